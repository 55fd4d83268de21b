"""A blob of text becomes atomic facts, each entering by the normal ingest path."""
