"""Names that are one, because stored text says so."""

from django.db import connection

from memory.command.said import topics_said
from memory.domain.reading.aliases import aliases_find
from memory.domain.reading.folding import fold
from memory.forgetting.ground import scope_sql
from memory.forgetting.judgement import Bound

# From name to name so many times: "Bob" is "Robert", and "Robert" signs as "R. Miller".
ROUNDS = 3
MOST_TEXTS = 200

_SAYING = """
SELECT m.topic_id FROM memory_topicmention m WHERE m.aliases && {names}::text[] AND {within}
ORDER BY m.topic_id LIMIT {most}
"""


def aliases_follow(name: str, *, scope: str) -> tuple[str, ...]:
    """Return the names that ``name`` goes by according to what is stored within ``scope``, itself first.

    Topics that were released or archived count too: what they say of a name stays true. At most three statements for
    each of ``ROUNDS`` rounds, one where there is no alias.
    """
    known = {fold(name): name}
    asked: set[str] = set()
    for _round in range(ROUNDS):
        names = sorted(set(known) - asked)
        if not names:
            break
        asked |= set(names)
        bound = Bound()
        sql = _SAYING.format(
            names=bound.bind(names), within=scope_sql("m.scope_id", scope, bound.bind), most=MOST_TEXTS
        )
        with connection.cursor() as cursor:
            cursor.execute(sql, bound.values)
            ids = [row[0] for row in cursor.fetchall()]
        if not ids:
            break
        for topic in topics_said(ids, ever=True).values():
            for one, other in (pair for text in topic.texts() for pair in aliases_find(text)):
                for this, that in ((one, other), (other, one)):
                    if fold(this) in asked:
                        known.setdefault(fold(that), that)
    return tuple(known.values())
