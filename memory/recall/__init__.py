"""The read path: candidates, ranking, bundles, and the trace that a retrieval leaves. ``query.query_answer`` is the door."""
