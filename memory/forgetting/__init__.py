"""Forgetting: the state of a topic, and what changes it."""
