"""The read path: candidates, bundles, and the trace that a retrieval leaves. ``query.query_answer`` is the door."""
