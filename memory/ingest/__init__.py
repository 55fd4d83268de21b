"""The write path: placement, revision, links, embedding. The entry point is ``apply.ingest_apply``."""
