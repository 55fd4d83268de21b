"""Parts of a parsed search: the question, the words to mark, the scope, and the states to list."""

from collections.abc import Container

from memory.predicates.tree import AllOf, AnyOf, Comparison, Not, Phrase, Predicate, Word, all_of, any_of, leaves

LIVE, ARCHIVED, RELEASED = "live", "archived", "released"
STATES = (LIVE, ARCHIVED, RELEASED)


def parts_of(predicate: Predicate | None) -> tuple[Predicate, ...]:
    """Return the conditions that must all hold: the parts of an ``AllOf``, or any other predicate itself."""
    if predicate is None:
        return ()
    return predicate.parts if isinstance(predicate, AllOf) else (predicate,)


def texts_of(predicate: Predicate | None, *, wanted: bool = False) -> list[str]:
    """Return the words and phrases of a search, each once, in order. If ``wanted`` is true, words and phrases that the
    search excludes are left out."""
    found = [
        leaf.text
        for leaf, negated in leaves(predicate)
        if isinstance(leaf, (Word, Phrase)) and not (wanted and negated)
    ]
    return list(dict.fromkeys(found))


def without_words(predicate: Predicate | None, words: Container[str]) -> Predicate | None:
    """Return the search without the words in ``words``, for example without words that text search ignores. Return None
    if nothing is left."""
    match predicate:
        case Word(text):
            return None if text in words else predicate
        case Not(part):
            rest = without_words(part, words)
            return None if rest is None else Not(rest)
        case AllOf(parts):
            return all_of(*(without_words(part, words) for part in parts))
        case AnyOf(parts):
            return any_of(*(without_words(part, words) for part in parts))
        case _:
            return predicate


def question_of(predicate: Predicate | None) -> tuple[str, Predicate | None]:
    """Return (question, conditions). The words and phrases at the top level form the question. The conditions are
    everything except the words, so a phrase is in both."""
    parts = parts_of(predicate)
    asked = [part.text for part in parts if isinstance(part, (Word, Phrase))]
    return " ".join(asked), all_of(*(part for part in parts if not isinstance(part, Word)))


def scope_of(predicate: Predicate | None) -> str:
    """Return the scope of all results: the narrowest scope at the top level."""
    scopes = (str(part.value) for part in parts_of(predicate) if isinstance(part, Comparison) and part.field == "scope")
    return max(scopes, key=len, default="/")


def states_of(predicate: Predicate | None) -> tuple[str, ...]:
    """Return the ``STATES`` of the topics to list. Released topics are listed only with ``is:released``."""
    found = [LIVE, ARCHIVED]
    if (Comparison("released", "is", True), False) in leaves(predicate):
        found.append(RELEASED)
    for part in parts_of(predicate):
        match part:
            case Comparison("released"):
                found = [state for state in found if state == RELEASED]
            case Comparison("live") | Not(Comparison("rung", _, "archived")):
                found = [state for state in found if state != ARCHIVED]
            case Comparison("rung", _, rung):
                excluded = LIVE if rung == ARCHIVED else ARCHIVED
                found = [state for state in found if state != excluded]
            case _:
                pass
    return tuple(found)
