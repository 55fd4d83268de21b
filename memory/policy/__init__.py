"""Policies: the values and rules in force for a scope, their versions, presets and schedules."""
