"""The metric of items sent to ingest, by any route."""

from prometheus_client import Counter

from memory.stores.metrics import per_store, store_label

ITEMS = per_store(Counter("memstate_ingested_items", "Items sent to ingest.", ["store", "outcome"]))


def items_count(*, accepted: int, refused: int) -> None:
    """Count items of ingest, after the commit. The count is per process."""
    store = store_label()
    ITEMS.labels(store, "accepted").inc(accepted)
    ITEMS.labels(store, "refused").inc(refused)
