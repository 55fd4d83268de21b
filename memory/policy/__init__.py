"""Which values are in force for a scope."""
