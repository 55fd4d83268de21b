"""Pure Python: the rules of the store, without Django, clock, database or network."""
