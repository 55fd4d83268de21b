"""Which accesses count: a repeat of the same query by the same key within a short time counts once."""

from collections.abc import Iterable, Mapping

# Who asked and what: the id of the key and the hash of the query.
Asked = tuple[str, str]


def repeats_dropped(
    accesses: Iterable[tuple[int, Asked, float]], *, window: float, counted_before: Mapping[Asked, float]
) -> list[int]:
    """Return the ids of the accesses that count.

    ``accesses`` are ``(id, asked, at)``, ``at`` in epoch seconds; ``counted_before`` holds the moment of the last
    access that counted for each ``asked`` before these. An access counts when the last one that counted lies at least
    ``window`` seconds away; with a window of 0 each counts. The measure is the last access that *counted*, so an agent
    that asks every 30 seconds is counted every 60, not never. Away in either direction: an access may be logged a
    moment after a later one, and be folded in the next turn.
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
