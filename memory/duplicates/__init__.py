"""Finds topics that may say the same, lets people review them, merges them, and undoes a merge."""
