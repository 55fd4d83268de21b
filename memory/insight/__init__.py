"""Insight: why a topic was archived, what was missed, and what another policy would have done."""
