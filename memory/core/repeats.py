"""Decides which accesses count as use: a query that a key repeats within a short time counts once."""

from collections.abc import Iterable, Mapping

# The id of the key and the hash of the query.
Asked = tuple[str, str]


def repeats_dropped(
    accesses: Iterable[tuple[int, Asked, float]], *, window: float, counted_before: Mapping[Asked, float]
) -> list[int]:
    """Return the ids of the accesses that count.

    ``accesses`` are (id, asked, at) with ``at`` in epoch seconds. ``counted_before`` maps each ``asked`` to the time of
    the last access that counted. An access counts if its distance to the last access that counted is at least
    ``window`` seconds: of a query that is repeated every 30 seconds, every second access counts with a window of 60.
    With a window of 0, every access counts. The distance is absolute, because an access may be logged after a later
    one.
    """
    last = dict(counted_before)
    counted = []
    for access_id, asked, at in sorted(accesses, key=lambda access: (access[2], access[0])):
        previous = last.get(asked)
        if previous is not None and abs(at - previous) < window:
            continue
        last[asked] = at if previous is None else max(at, previous)
        counted.append(access_id)
    return counted
