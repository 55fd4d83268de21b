"""Predicates: what is asked of topics, as one tree.

The conditions of rules are read from JSON (``rule_json``), searches from what people type (``search_text``), filters
from the fields of a form (``fields``). The tree becomes SQL (``sql``) and words (``words``).
"""
