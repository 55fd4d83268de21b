"""How many items were sent to ingest, by whatever door; for monitoring."""

from prometheus_client import Counter

ITEMS = Counter("memstate_ingested_items", "Items sent to ingest.", ["outcome"])


def items_count(*, accepted: int, refused: int) -> None:
    """Count items of ingest, once what is accepted is committed. The count is that of this process."""
    ITEMS.labels("accepted").inc(accepted)
    ITEMS.labels("refused").inc(refused)
