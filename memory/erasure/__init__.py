"""Forgetting on request: release, purge and supersede. The request is a text or a filter."""
