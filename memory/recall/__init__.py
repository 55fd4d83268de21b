"""Answers questions: candidates, bundles, and the record of each retrieval. The entry point is
``query.query_answer``."""
