"""Tries policies without changing anything: what a run would do now, and what runs would have done."""
