"""The write path: placement, revision, links, embedding. ``apply.ingest_apply`` is the door."""
