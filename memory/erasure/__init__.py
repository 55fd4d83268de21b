"""Forgetting on command: release, purge and supersede, by what a request says or by a filter."""
