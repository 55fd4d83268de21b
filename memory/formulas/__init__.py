"""Formulas of salience, strategies and the ladder. Pure Python.

Their settings (half-lives, thresholds) and defaults are in ``memory/core/policy_values.py``.
"""
