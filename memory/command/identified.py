"""Topics that name an identifier, in whatever spelling."""

import itertools
import re
import uuid

from memory.command.answer import Answer, Matched, excerpt, ids_read
from memory.command.fit import values_sought
from memory.command.said import topics_said
from memory.command.spelled import code_like, spelled_enough, spelled_find, spelled_ids
from memory.domain.reading.identifiers import STRONG, Identifier, identifiers_find, identifiers_index
from memory.domain.reading.requests import Request
from memory.forgetting.judgement import Bound
from memory.forgetting.standing import MOST_AT_ONCE

# "ISBN 0-306-40615-2" may stand without the word.
_LABEL = re.compile(r"^[^\W\d_]+[\s:#.-]+")
# Kinds that a sign begins.
_SIGNED = frozenset({"handle", "hashtag"})
# Kinds that people write in other groups; in an address the groups tell one from another.
_GROUPED = frozenset({"code", "handle", "hashtag", "isbn", "path", "ssn", "vin", "card", "iban", "hash"})

_BY_IDENTIFIERS = """
SELECT m.topic_id FROM memory_topicmention m JOIN memory_topic t ON t.id = m.topic_id
WHERE m.identifiers && {wanted}::text[] AND {conditions} ORDER BY t.created_at, t.id LIMIT {most}
"""


def identified_find(request: Request, conditions: str, bound: Bound, *, history: bool) -> Answer:
    """Return the topics that name one of the identifiers of ``request``, in any spelling.

    ``history`` takes those too that named it once. Three queries, and three for each code that people group freely.
    """
    answer = _named(request, conditions, bound, history=history)
    known = {match.topic_id for match in answer.matches}
    spelled = [m for m in codes_find(request, conditions, bound, history=history) if m.topic_id not in known]
    return Answer([*answer.matches, *spelled]) if spelled else answer


def _named(request: Request, conditions: str, bound: Bound, *, history: bool) -> Answer:
    """Return the topics that name one of the identifiers that single out a thing, and all that merely describe."""
    strong = frozenset(key for found in request.identifiers if found.kind in STRONG for key in found.sought)
    weak = [keys for keys in values_sought(request.body) if not keys & strong]
    wanted = strong or frozenset(key for keys in weak for key in keys)
    sql = _BY_IDENTIFIERS.format(wanted=bound.bind(sorted(wanted)), conditions=conditions, most=MOST_AT_ONCE + 1)
    matches = []
    for topic in topics_said(ids_read(sql, bound), ever=history).values():
        for text in topic.texts():
            found = _first(text, wanted)
            if found is not None and all(identifiers_index(text) & keys for keys in weak):
                why = f"It names the {found.kind.replace('_', ' ')} {found.text}."
                matches.append(Matched(topic.id, why, 1.0, excerpt(text, found.start)))
                break
    told = " or ".join(dict.fromkeys(found.text for found in request.identifiers))
    return Answer(matches, question="" if matches else f"Nothing here names {told}.")


def _first(text: str, wanted: frozenset[str]) -> Identifier | None:
    return next((found for found in identifiers_find(text) if found.stored & wanted), None)


def codes_find(request: Request, conditions: str, bound: Bound, *, history: bool) -> list[Matched]:
    """Return the topics that write the codes of a request in other groups, or without their leading sign or word."""
    codes = {request.body: False} if code_like(request.body) else {}
    for one in request.identifiers:
        if one.kind in _GROUPED and spelled_enough(one.text):
            plain = _LABEL.sub("", one.text)
            codes |= {text: one.kind in _SIGNED for text in (one.text, plain, one.canonical) if spelled_enough(text)}
    # As plain words a code was compared with nothing yet.
    compared = {one.kind for one in request.identifiers} if request.kind == "identifiers" else set()
    if not codes:
        return []
    matches: dict[uuid.UUID, Matched] = {}
    ids = spelled_ids(codes, conditions=conditions, bound=bound, history=history, most=MOST_AT_ONCE + 1)
    for topic in topics_said(ids, ever=history).values():
        for text, (code, signed) in itertools.product(topic.texts(), codes.items()):
            place = spelled_find(text, code)
            # A name in its plain form is a person's; a handle without its sign is written as it is spelled.
            if place and not (signed and text[slice(*place)].istitle()) and not _another(text, place, compared):
                matches[topic.id] = Matched(topic.id, f"It writes {text[slice(*place)]}.", 0.9, excerpt(text, place[0]))
                break
    return list(matches.values())


def _another(text: str, place: tuple[int, int], kinds: set[str]) -> bool:
    """Tell whether what stands there is an identifier of ``kinds``; it was compared already, and is another one."""
    return any(one.kind in kinds and (one.start, one.end) == place for one in identifiers_find(text))
