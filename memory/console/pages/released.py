"""Released: topics that no query returns, who released them and why. They can be restored here."""

import uuid
from collections.abc import Mapping
from typing import Any

from memory.access.principal import Principal
from memory.console.list_page import ListPage, SortColumn, TopicFields, filters_of, sort_field
from memory.console.queries.released_list import ReleasedFilter, released_count, released_ids, released_list
from memory.console.time_ranges import RangeForm

COLUMNS = (
    "topic_id",
    "title",
    "scope",
    "kind",
    "released_at",
    "rung",
    "because",
    "reason",
    "by",
    "run_id",
    "policy",
    "version",
    "newer_id",
    "newer_title",
)
SORTS = {"released": SortColumn("released", "-released"), "title": SortColumn("title", "-title", descending=False)}


class ReleasedForm(TopicFields, RangeForm[ReleasedFilter]):
    """The filter of the list."""

    sort = sort_field(SORTS)

    field_order = ("text", "scope", "kind")

    def to_filter(self) -> ReleasedFilter:
        """Return the filter; invalid fields are ignored."""
        cleaned: dict[str, Any] = self.cleaned_data
        since, until = self.period()
        return ReleasedFilter(
            scope=cleaned.get("scope") or "/",
            kind=cleaned.get("kind") or None,
            text=cleaned.get("text") or None,
            since=since,
            until=until,
            sort=cleaned.get("sort") or "released",
        )


def released_chosen(members: Mapping[str, Any], *, principal: Principal, at_most: int) -> list[uuid.UUID]:
    """Return the ids of all topics that match the filter in a URL; none if the filter is invalid. One query."""
    form = ReleasedForm(members)
    return released_ids(form.to_filter(), principal=principal, at_most=at_most) if form.is_valid() else []


# The released topics. One query for a page, one for the count.
RELEASED = ListPage(
    name="released",
    address="released/",
    form=ReleasedForm,
    fetch=lambda asked, cursor, limit: released_list(
        asked.filter, principal=asked.principal, cursor=cursor, limit=limit
    ),
    count=lambda asked, most: released_count(asked.filter, principal=asked.principal, at_most=most),
    noun="memory",
    columns=COLUMNS,
    more=lambda asked, _topics: filters_of(asked.request, ReleasedForm),
    sorts=SORTS,
)

urlpatterns = RELEASED.urlpatterns
