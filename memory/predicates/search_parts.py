"""What a search asks for: the question, the words to mark, the scope, and the lists to look at."""

from collections.abc import Container

from memory.predicates.tree import AllOf, AnyOf, Comparison, Not, Phrase, Predicate, Word, all_of, any_of, leaves

LIVE, ARCHIVED, RELEASED = "live", "archived", "released"
STATES = (LIVE, ARCHIVED, RELEASED)


def parts_of(predicate: Predicate | None) -> tuple[Predicate, ...]:
    """Return what all has to hold: the parts of an ``AllOf``, else the predicate itself."""
    if predicate is None:
        return ()
    return predicate.parts if isinstance(predicate, AllOf) else (predicate,)


def texts_of(predicate: Predicate | None, *, wanted: bool = False) -> list[str]:
    """Return the words and phrases of a search, each once, in their order; with ``wanted`` not those it excludes."""
    found = [
        leaf.text
        for leaf, negated in leaves(predicate)
        if isinstance(leaf, (Word, Phrase)) and not (wanted and negated)
    ]
    return list(dict.fromkeys(found))


def without_words(predicate: Predicate | None, words: Container[str]) -> Predicate | None:
    """Return the search without those ``Word``s: what tells nothing apart asks for nothing."""
    match predicate:
        case Word(text):
            return None if text in words else predicate
        case Not(part):
            left = without_words(part, words)
            return None if left is None else Not(left)
        case AllOf(parts):
            return all_of(*(without_words(part, words) for part in parts))
        case AnyOf(parts):
            return any_of(*(without_words(part, words) for part in parts))
        case _:
            return predicate


def question_of(predicate: Predicate | None) -> tuple[str, Predicate | None]:
    """Return the question that the words and phrases at the top ask, and the conditions that are left.

    A word at the top asks, as in a query: it need not occur. A phrase asks and is a condition as well.
    """
    parts = parts_of(predicate)
    asked = [part.text for part in parts if isinstance(part, (Word, Phrase))]
    return " ".join(asked), all_of(*(part for part in parts if not isinstance(part, Word)))


def scope_of(predicate: Predicate | None) -> str:
    """Return the scope that everything has to lie in, the narrowest of those at the top."""
    scopes = (str(part.value) for part in parts_of(predicate) if isinstance(part, Comparison) and part.field == "scope")
    return max(scopes, key=len, default="/")


def states_of(predicate: Predicate | None) -> tuple[str, ...]:
    """Return which of ``STATES`` a list has to look at. Released topics are examined only if ``is:released`` asks
    for them."""
    found = [LIVE, ARCHIVED]
    if (Comparison("released", "is", True), False) in leaves(predicate):
        found.append(RELEASED)
    for part in parts_of(predicate):
        match part:
            case Comparison("released"):
                found = [standing for standing in found if standing == RELEASED]
            case Comparison("live") | Not(Comparison("rung", _, "archived")):
                found = [standing for standing in found if standing != ARCHIVED]
            case Comparison("rung", _, rung):
                gone = LIVE if rung == ARCHIVED else ARCHIVED
                found = [standing for standing in found if standing != gone]
            case _:
                pass
    return tuple(found)
