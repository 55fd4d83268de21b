"""Forgetting: where a topic stands, and what moves it."""
