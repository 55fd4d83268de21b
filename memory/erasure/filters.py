"""Filters that choose the topics of a command: scope, age, kinds, categories, ids."""

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory.access.principal import Principal
from memory.core.durations import duration_parse
from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.forgetting.manual_actions import MOST_AT_ONCE
from memory.predicates.binding import Bound
from memory.predicates.fields import predicate_from_fields
from memory.predicates.sql import predicate_sql


@dataclass(frozen=True, slots=True)
class ForgetFilter:
    """Conditions on the topics of a command; None means no condition. ``older_than`` is the age since creation, such as
    ``30d``. A topic matches ``categories`` if it has one of them."""

    scope: str | None = None
    older_than: str | None = None
    categories: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None
    ids: tuple[uuid.UUID, ...] | None = None

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "ForgetFilter":
        """Return the filter for members of JSON; ids may be strings."""
        lists = {
            name: None if members.get(name) is None else tuple(members[name]) for name in ("categories", "kinds", "ids")
        }
        ids = lists.pop("ids")
        return cls(
            scope=members.get("scope"),
            older_than=members.get("older_than"),
            **lists,
            ids=None if ids is None else tuple(uuid.UUID(str(topic_id)) for topic_id in ids),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the filter as JSON, without conditions that are not set."""
        members = {
            "scope": self.scope,
            "older_than": self.older_than,
            "categories": list(self.categories) if self.categories is not None else None,
            "kinds": list(self.kinds) if self.kinds is not None else None,
            "ids": [str(topic_id) for topic_id in self.ids] if self.ids is not None else None,
        }
        return {name: value for name, value in members.items() if value is not None}

    def describe(self) -> str:
        """Return the conditions in words, as the reason why a topic matched."""
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
    """Return the conditions of ``wanted`` on a topic ``t`` within ``scope`` as SQL. ``inactive`` includes released and
    merged topics, because a purge must erase these too.

    Raises ``ValueRefused`` for an invalid age, and for lists that are empty or too long.
    """
    conditions = [] if inactive else ["t.released_at IS NULL", "t.merged_into_id IS NULL"]
    for name, values in (("ids", wanted.ids), ("kinds", wanted.kinds), ("categories", wanted.categories)):
        if values is not None and not values:
            raise ValueRefused(
                f"The list of {name} is empty. Leave it out to match all.", code=ProblemCode.NOTHING_NAMED
            )
    if wanted.ids is not None and len(wanted.ids) > MOST_AT_ONCE:
        raise ValueRefused(
            f"A request can name at most {MOST_AT_ONCE:,} ids; this one has {len(wanted.ids):,}.",
            code=ProblemCode.TOO_MANY_TOPICS,
        )
    predicate = predicate_from_fields(
        scope=scope,
        ids=wanted.ids,
        kinds=wanted.kinds,
        categories=wanted.categories,
        older_than=None if wanted.older_than is None else float(duration_parse(wanted.older_than)),
    )
    now_sql = f"{bound.bind(now)}::timestamptz"
    conditions.append(predicate_sql(predicate, now=now_sql, bind=bound.bind, narrow=False).sql)
    return " AND ".join(conditions)


def scope_of(wanted: ForgetFilter, scope: str | None, principal: Principal) -> str:
    """Return the scope of a command: that of the filter, else ``scope``, else that of the caller.

    Raises ``NotVisible`` for a scope outside the caller's, ``ValueRefused`` for an invalid path or two that differ.
    """
    chosen = principal.scope_chosen(wanted.scope if wanted.scope is not None else scope)
    if wanted.scope is not None and scope is not None and principal.scope_chosen(scope) != chosen:
        raise ValueRefused(
            "The request names two scopes, one of them in its filter. Name one.", code=ProblemCode.CONTRADICTORY_REQUEST
        )
    return chosen
