"""Filters that choose the topics of a command: scope, age, kinds, categories, ids."""

import datetime as dt
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from memory.access.principal import Principal
from memory.core.durations import duration_parse
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.forgetting.manual_actions import MAX_AT_ONCE
from memory.predicates.binding import Bound
from memory.predicates.form_fields import predicate_from_fields
from memory.predicates.sql import predicate_sql


@dataclass(frozen=True, slots=True)
class ForgetFilter:
    """Conditions on the topics of a command; None means no condition. ``older_than`` is the least age since creation,
    such as ``30d``. A topic matches a list of values if it has at least one of these values."""

    scope: str | None = None
    older_than: str | None = None
    categories: Sequence[str] | None = None
    kinds: Sequence[str] | None = None
    ids: Sequence[uuid.UUID | str] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the conditions as JSON."""
        members = {name: value for name, value in asdict(self).items() if value is not None}
        return members if self.ids is None else members | {"ids": [str(topic_id) for topic_id in self.ids]}

    def describe(self) -> str:
        """Return the conditions in words, to state why a topic matched."""
        parts = []
        if self.ids is not None:
            parts.append("named by its id")
        if self.kinds is not None:
            parts.append(f"of kind {' or '.join(self.kinds)}")
        if self.categories is not None:
            parts.append(f"in category {' or '.join(self.categories)}")
        if self.older_than is not None:
            parts.append(f"older than {self.older_than}")
        if self.scope is not None:
            parts.append(f"within {self.scope}")
        return ", ".join(parts)


def conditions_sql(wanted: ForgetFilter, scope: str, bound: Bound, *, now: dt.datetime, inactive: bool = False) -> str:
    """Return the SQL condition that a row ``t`` of the table of topics is within ``scope`` and matches ``wanted``.

    With ``inactive``, released and merged topics match, too. Raises ``ValueRefused`` for an invalid age, and for a list
    that is empty or too long.
    """
    for name, values in (("ids", wanted.ids), ("kinds", wanted.kinds), ("categories", wanted.categories)):
        if values is not None and not values:
            raise ValueRefused(
                f"The list of {name} is empty. Leave it out to match all.", code=ProblemCode.MISSING_MEMBER, member=name
            )
    if wanted.ids is not None and len(wanted.ids) > MAX_AT_ONCE:
        raise ValueRefused(
            f"A request can name at most {MAX_AT_ONCE:,} ids; this one has {len(wanted.ids):,}.",
            code=ProblemCode.TOO_LARGE,
            member="ids",
        )
    predicate = predicate_from_fields(
        scope=scope,
        ids=wanted.ids,
        kinds=wanted.kinds,
        categories=wanted.categories,
        older_than=None if wanted.older_than is None else float(duration_parse(wanted.older_than)),
    )
    condition = predicate_sql(predicate, now=f"{bound.bind(now)}::timestamptz", bind=bound.bind, narrow=False).sql
    return condition if inactive else f"t.released_at IS NULL AND t.merged_into_id IS NULL AND {condition}"


def scope_of(wanted: ForgetFilter, scope: str | None, principal: Principal) -> str:
    """Return the scope of a command: the scope of the filter, else ``scope``, else the scope of the caller.

    Raises ``NotVisible`` for a scope to which the caller has no access, and ``ValueRefused`` for an invalid path or for
    two different scopes.
    """
    chosen = principal.scope_chosen(wanted.scope if wanted.scope is not None else scope)
    if wanted.scope is not None and scope is not None and principal.scope_chosen(scope) != chosen:
        raise ValueRefused(
            "The request names two scopes, one of them in its filter. Name one.", code=ProblemCode.CONTRADICTORY_REQUEST
        )
    return chosen
