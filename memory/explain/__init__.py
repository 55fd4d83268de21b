"""Says why a memory has its stage, what forgetting cost, and how salience came about."""
