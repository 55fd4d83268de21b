"""Finds the stored facts to which a request refers. Strong evidence outweighs rank. Guards exclude facts to which the
request cannot refer."""
