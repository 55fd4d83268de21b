"""The metric of items sent to ingest, by any route."""

from prometheus_client import Counter

ITEMS = Counter("memstate_ingested_items", "Items sent to ingest.", ["outcome"])


def items_count(*, accepted: int, refused: int) -> None:
    """Count items of ingest, after the commit. The count is per process."""
    ITEMS.labels("accepted").inc(accepted)
    ITEMS.labels("refused").inc(refused)
