"""Formulas of salience, strategies and the ladder. Pure Python.

``memory/core/policy_values.py`` has the settings of these formulas (half-lives, thresholds) with their defaults.
"""
