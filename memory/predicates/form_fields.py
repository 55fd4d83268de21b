"""Makes a predicate from the fields of a form or a request."""

from collections.abc import Iterable

from memory.predicates.tree import AllOf, Comparison, Value


def predicate_from_fields(
    *,
    scope: str = "/",
    ids: Iterable[object] | None = None,
    kinds: Iterable[str] | None = None,
    categories: Iterable[str] | None = None,
    older_than: float | None = None,
    rung: str | None = None,
    pinned: bool | None = None,
) -> AllOf:
    """Return a predicate that is true for topics that match all fields. A field that is None is ignored. A list matches
    if one of its entries matches. ``scope`` is canonical, ``older_than`` is in seconds."""
    fields: tuple[tuple[str, str, Value], ...] = (
        ("scope", "within", scope),
        ("id", "in", _words(ids)),
        ("kind", "in", _words(kinds)),
        ("category", "has_any", _words(categories)),
        ("age", ">", older_than),
        ("rung", "is", rung),
        ("pinned", "is", pinned),
    )
    return AllOf(tuple(Comparison(*each) for each in fields if each[2] is not None))


def _words(values: Iterable[object] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(map(str, values))
