"""Predicates: conditions on topics as one tree.

Conditions of rules are parsed from JSON (``rule_conditions``), searches from typed text (``search_text``), filters from
the fields of a form (``form_fields``). The tree becomes SQL (``sql``) and words (``words``).
"""
