"""Callers: API keys, accounts, roles, and the scope that a key is bound to."""
