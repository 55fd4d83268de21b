"""Decides which accesses count as use: a query that a key repeats within a short time counts once."""

from collections.abc import Iterable, Mapping

# The id of the key and the hash of the query.
Asked = tuple[str, str]


def repeats_dropped(
    accesses: Iterable[tuple[int, Asked, float]], *, window: float, counted_before: Mapping[Asked, float]
) -> list[int]:
    """Return the ids of the accesses that count. An access counts unless another one with the same ``Asked`` has
    counted less than ``window`` seconds before or after it. ``accesses`` are triples of an id, an ``Asked`` and a time
    in seconds since 1970. ``counted_before`` maps an ``Asked`` to the time at which it last counted."""
    last = dict(counted_before)
    counted = []
    for access_id, asked, at in sorted(accesses, key=lambda access: (access[2], access[0])):
        previous = last.get(asked)
        if previous is not None and abs(at - previous) < window:
            continue
        last[asked] = at if previous is None else max(at, previous)
        counted.append(access_id)
    return counted
