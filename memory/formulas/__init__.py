"""Formulas of salience, strategies and the ladder. Pure Python."""
