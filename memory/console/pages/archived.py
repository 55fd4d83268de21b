"""Archived: archived topics, why they were archived, and whether they were missed. They can be restored here."""

import uuid
from collections.abc import Mapping
from typing import Any

from django import forms

from memory.access.principal import Principal
from memory.console.fields import ScopeField
from memory.console.list_page import ListPage, SortColumn, TopicFields, filters_of, sort_field
from memory.console.queries.archive_list import ArchiveFilter, archived_count, archived_ids, archived_list
from memory.console.time_ranges import RangeForm

COLUMNS = (
    "topic_id",
    "title",
    "scope",
    "kind",
    "archived_at",
    "from_rung",
    "because",
    "reason",
    "by",
    "run_id",
    "policy",
    "version",
    "score",
    "salience",
    "pinned",
    "looked_up",
    "looked_up_at",
    "shadow_hits",
    "shadow_rank",
    "restored_before",
)
SORTS = {
    "archived": SortColumn("archived", "-archived"),
    "score": SortColumn("score", "-score"),
    "title": SortColumn("title", "-title", descending=False),
}
# Filters for the topics of one run or of one version of a policy. Only links set them.
ASIDE = ("run", "policy", "version")


class ArchivedForm(TopicFields, RangeForm[ArchiveFilter]):
    """The filter of the list."""

    because = forms.ChoiceField(
        required=False,
        label="Reason",
        choices=[("", "Any"), ("threshold", "Threshold"), ("rule", "Rule"), ("hand", "By hand")],
    )
    regret = forms.ChoiceField(
        label="Missed", required=False, choices=[("", "Any"), ("missed", "Needed since"), ("unseen", "Never looked up")]
    )
    sort = sort_field(SORTS)
    run = forms.UUIDField(required=False)
    policy = ScopeField(required=False, label="Policy of")
    version = forms.IntegerField(required=False, min_value=1, max_value=1_000_000)

    field_order = ("text", "scope", "kind", "because", "regret", *ASIDE)

    def shown(self) -> list[forms.BoundField]:
        """Return the visible fields. Those in ``ASIDE`` are shown only if they have a value."""
        return [field for field in super().shown() if field.name not in ASIDE or self.data.get(field.name)]

    def to_filter(self) -> ArchiveFilter:
        """Return the filter; invalid fields are ignored."""
        cleaned: dict[str, Any] = self.cleaned_data
        since, until = self.period()
        return ArchiveFilter(
            scope=cleaned.get("scope") or "/",
            kind=cleaned.get("kind") or None,
            text=cleaned.get("text") or None,
            why=cleaned.get("because") or None,
            run=cleaned.get("run"),
            policy=cleaned.get("policy") or None,
            version=cleaned.get("version"),
            since=since,
            until=until,
            missed=cleaned.get("regret") == "missed",
            unseen=cleaned.get("regret") == "unseen",
            sort=cleaned.get("sort") or "archived",
        )


def archived_chosen(members: Mapping[str, Any], *, principal: Principal, at_most: int) -> list[uuid.UUID]:
    """Return the ids of all topics that match the filter in a URL. One query. An invalid filter matches none, so that
    an action on all matching topics cannot change more topics than the user saw."""
    form = ArchivedForm(members)
    return archived_ids(form.to_filter(), principal=principal, at_most=at_most) if form.is_valid() else []


# The archived topics. Three queries for a page, one for the count.
ARCHIVED = ListPage(
    name="archived",
    address="archived/",
    form=ArchivedForm,
    fetch=lambda asked, cursor, limit: archived_list(
        asked.filter, principal=asked.principal, cursor=cursor, limit=limit, now=asked.now
    ),
    count=lambda asked, most: archived_count(asked.filter, principal=asked.principal, at_most=most),
    noun="memory",
    columns=COLUMNS,
    # If the list is ordered by time, the topics of a run are next to each other, so the page groups them.
    more=lambda asked, _topics: {
        **filters_of(asked.request, ArchivedForm),
        "by_run": asked.filter.sort in ("archived", "-archived"),
    },
    sorts=SORTS,
)

urlpatterns = ARCHIVED.urlpatterns
