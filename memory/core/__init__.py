"""Shared basics of the store in pure Python, without Django, clock, database or network."""
