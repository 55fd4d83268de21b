"""Writes items into topics: placement, revisions, links, embedding. The entry point is ``apply.ingest_apply``."""
