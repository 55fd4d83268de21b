"""Finds the stored facts to which a request refers: ranked candidates, strong evidence, and guards that exclude."""
