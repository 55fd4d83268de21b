"""Codes that no rule knows: the same letters and digits, whatever stands between them.

"sw1a2ab" is "SW1A 2AB", and "b mw 3301" the plate "B-MW 3301". Compared are whole words, so that no code is found in a
longer one.
"""

import re
import uuid
from collections.abc import Collection

from memory.command.answer import ids_read
from memory.domain.reading.folding import fold
from memory.forgetting.judgement import Bound

LEAST_SIGNS = 4
_WORD = re.compile(r"[a-z0-9]+")
# Between the parts of one code stands nothing longer than this.
_GAP = re.compile(r"[\s./_:()#\\-]{0,2}")
_PLAIN = "regexp_replace(lower({text}), '[^a-z0-9]', '', 'g') LIKE ANY({like}::text[])"

_SAYING = """
SELECT t.id FROM memory_topic t
WHERE {conditions} AND ({title} OR {summary} OR EXISTS (
    SELECT 1 FROM memory_field f JOIN memory_revision r ON r.field_id = f.id AND {current}
    WHERE f.topic_id = t.id AND {value}
)) ORDER BY t.created_at, t.id LIMIT {most}
"""


def code_like(text: str) -> bool:
    """Tell whether a request is nothing but a code: short words with digits in some of them."""
    words = _WORD.findall(fold(text))
    return (
        sum(map(len, words)) >= LEAST_SIGNS
        and any(map(str.isdigit, "".join(words)))
        and all(len(word) <= 3 or any(map(str.isdigit, word)) for word in words)
    )


def spelled_enough(text: str) -> bool:
    """Tell whether a code has signs enough to be looked for in every text."""
    return sum(map(len, _WORD.findall(fold(text)))) >= LEAST_SIGNS + 2


def spelled_find(text: str, wanted: str) -> tuple[int, int] | None:
    """Return where ``text`` writes the code ``wanted``, in whatever groups; None if it does not."""
    plain = "".join(_WORD.findall(fold(wanted)))
    lowered = text.casefold()
    words = list(_WORD.finditer(lowered))
    for first, start in enumerate(words):
        said = ""
        for at in range(first, len(words)):
            if at > first and not _GAP.fullmatch(lowered[words[at - 1].end() : words[at].start()]):
                break
            said += words[at].group()
            if not plain.startswith(said):
                break
            if said == plain and _whole(lowered, start.start(), words[at].end()):
                return start.start(), words[at].end()
    return None


def spelled_ids(codes: Collection[str], *, conditions: str, bound: Bound, history: bool, most: int) -> list[uuid.UUID]:
    """Return the topics among those of ``conditions`` whose letters and digits hold those of one of ``codes``; to be
    checked with ``spelled_find``. One query, which reads every text: it is asked only where no index has an answer."""
    like = bound.bind(sorted({"%" + "".join(_WORD.findall(fold(code))) + "%" for code in codes}))
    sql = _SAYING.format(
        conditions=conditions, title=_PLAIN.format(text="t.title", like=like),
        summary=_PLAIN.format(text="t.summary", like=like), value=_PLAIN.format(text="r.value", like=like),
        current="true" if history else "r.seq = f.last_seq", most=most,
    )  # fmt: skip
    return ids_read(sql, bound)


def _whole(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    goes_on = len(after) == 2 and after[0] in "-./_:" and after[1].isalnum()
    comes_from = len(before) == 2 and before[1] in "-./_:" and before[0].isalnum()
    return not (goes_on or comes_from)
