"""Lists: a ``ListPage`` declares a list and provides its page, its count and its exports. The count loads after the
page.

The URL of a list contains the filter, the order and the cursor. The page, the count and the exports read the same
filter from the URL, so they always cover the same rows.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils import timezone

from memory.access.principal import Principal
from memory.console.fields import KindField, ScopeField
from memory.console.listing import ROWS, Row, count_words, export, filter_refused
from memory.console.page import READER, ConsoleRequest, page, refusal, show
from memory.models.newest_first import SORTED_AMONG, Order
from memory.predicates.search_text import SearchFlaw

FilterT = TypeVar("FilterT")
Item = TypeVar("Item")


class FilterForm(forms.Form, Generic[FilterT]):
    """The filter form of a list."""

    def shown(self) -> list[forms.BoundField]:
        """Return the visible fields."""
        return self.visible_fields()

    def kept(self) -> list[forms.BoundField]:
        """Return the hidden fields with a value. The form sends them again."""
        return [field for field in self.hidden_fields() if field.value()]

    def to_filter(self) -> FilterT:
        """Return the filter; invalid fields are ignored."""
        raise NotImplementedError


class NoFilter(FilterForm[None]):
    """The form of a list without filters."""

    def to_filter(self) -> None:
        """Return nothing."""


class TopicFields(forms.Form):
    """The fields by which every list of topics can be filtered."""

    text = forms.CharField(
        required=False,
        max_length=200,
        label="Title or summary",
        widget=forms.TextInput(attrs={"type": "search", "placeholder": "harbor", "data-search": True}),
    )
    scope = ScopeField(required=False)
    kind = KindField(required=False, placeholder="finding")


def filters_of(request: ConsoleRequest, form: type[FilterForm[Any]]) -> dict[str, Any]:
    """Return two variables for templates. ``filters`` contains the filters and the order in the URL as (name, value).
    ``filtered`` says whether it contains anything besides the order."""
    members, fields = request.GET.lists(), form.base_fields
    filters = [(name, value) for name, values in members if name in fields for value in values if value]
    return {"filters": filters, "filtered": any(name != "sort" for name, _value in filters)}


@dataclass(frozen=True, slots=True)
class ListRequest(Generic[FilterT]):
    """One request for a list: the filter, the caller, the time, and the ``arguments`` of the URL."""

    request: ConsoleRequest
    form: FilterForm[FilterT] | None
    filter: FilterT
    now: dt.datetime
    arguments: Mapping[str, Any]

    @property
    def principal(self) -> Principal:
        """The caller."""
        return self.request.principal


@dataclass(frozen=True, slots=True)
class SortColumn:
    """A column by which a list can be sorted. ``first`` and ``second`` are the values of ``sort`` after the first and
    the second click; ``second`` may be empty. ``descending`` says whether ``first`` is descending. ``among`` is the
    number of newest rows that are sorted, 0 for all."""

    first: str
    second: str = ""
    descending: bool = True
    among: int = 0


def sort_columns(orders: Mapping[str, Order]) -> dict[str, SortColumn]:
    """Return a dict with a column for each order of a list. The keys are the names of the orders."""
    return {
        name: SortColumn(name, f"-{name}", order.descending, SORTED_AMONG if order.among else 0)
        for name, order in orders.items()
    }


def sort_field(columns: Mapping[str, SortColumn]) -> forms.ChoiceField:
    """Return the hidden field for the order of a list. The user chooses the order with the headers of ``columns``."""
    names = [name for column in columns.values() for name in (column.first, column.second) if name]
    return forms.ChoiceField(required=False, choices=[(name, name) for name in names], widget=forms.HiddenInput)


def sort_links(request: HttpRequest, columns: Mapping[str, SortColumn]) -> dict[str, dict[str, Any]]:
    """Return a dict for each column: ``query`` (the query string of its link), ``aria`` (the value of ``aria-sort``)
    and ``among`` (as in ``SortColumn``). The last two are empty unless the list is sorted by the column. By default,
    the list is sorted by the first column."""
    default = next(iter(columns.values())).first
    asked = request.GET.get("sort")
    known = {name for column in columns.values() for name in (column.first, column.second)}
    current = asked if asked and asked in known else default
    links = {}
    for name, column in columns.items():
        wanted = column.second if column.second and current == column.first else column.first
        members = request.GET.copy()
        for member in ("cursor", "sort"):
            members.pop(member, None)
        if wanted != default:
            members["sort"] = wanted
        aria, among = "", 0
        if current in (column.first, column.second):
            aria = "descending" if column.descending is (current == column.first) else "ascending"
            among = column.among
        links[name] = {"query": f"?{members.urlencode()}", "aria": aria, "among": among}
    return links


@dataclass(kw_only=True, eq=False, slots=True)
class ListPage(Generic[FilterT, Item]):
    """A list. ``urlpatterns`` contains the URLs of its page, its count and its exports.

    The filter comes from ``form``, or from ``read(request, **arguments)``, which raises a problem for an invalid
    filter. If the form has errors, the page uses only the valid fields as its filter, and exports are refused.
    """

    # The name of the URL and the template of the page. The URL names of the count and the exports append `_count` and
    # `_export`.
    name: str
    # The URL pattern of the page. Those of the count and the exports are below it.
    address: str
    form: Callable[[QueryDict], FilterForm[FilterT]] | None = None
    read: Callable[..., FilterT] | None = None
    # Returns the rows after a cursor, up to a limit, and the next cursor.
    fetch: Callable[[ListRequest[FilterT], str | None, int], tuple[Sequence[Item], str | None]]
    # Returns the number of rows, or the given limit + 1 if there are more. None if the list has no count.
    count: Callable[[ListRequest[FilterT], int], int] | None = None
    # The noun for a row in the count.
    noun: str = "row"
    # The columns of exports, in order. Empty if the list has no exports.
    columns: Sequence[str] = ()
    # Converts an item to a row of an export. By default, the item is the row, or has an attribute for each column.
    exported: Callable[[Item], Row] | None = None
    # Returns the name of an exported file; by default, this is ``name``. It is called before the export begins, so it
    # can raise a problem if there is nothing to export.
    file: Callable[[ListRequest[FilterT]], str] | None = None
    # Returns further context for the template.
    more: Callable[[ListRequest[FilterT], Sequence[Item]], Mapping[str, Any]] | None = None
    # The view of a page that shows more than the list. It gets the list from `context`.
    view: Callable[..., HttpResponseBase] | None = None
    # The least role for the count and the exports, and for the page unless there is a ``view``.
    least: str = READER
    limit: int = ROWS
    # The columns by which the list can be sorted. The first one is the default order.
    sorts: Mapping[str, SortColumn] | None = None

    @property
    def urlpatterns(self) -> list[URLPattern]:
        """The URLs of the list."""
        found = [path(self.address, self.view or page(get=self.least)(self._page), name=self.name)]
        if self.count is not None:
            found.append(path(f"{self.address}count/", page(get=self.least)(self._count), name=f"{self.name}_count"))
        if self.columns:
            address = f"{self.address}export.<exportform:form>"
            found.append(path(address, page(get=self.least)(self._export), name=f"{self.name}_export"))
        return found

    def context(
        self, request: ConsoleRequest, *, form: FilterForm[FilterT] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Return the variables for the template of a list: ``rows``, ``next`` (the cursor of the next page), ``form``,
        ``sorts`` (links), ``count_url``, ``exports`` (the name of a URL), and the variables of ``more``. The argument
        ``form`` replaces the form of the list. Runs the queries of ``fetch`` and ``more``."""
        asked = self._asked(request, arguments, form=form)
        rows, following = self.fetch(asked, request.GET.get("cursor"), self.limit)
        return {
            "rows": rows,
            "next": following,
            "form": asked.form,
            "count_url": reverse(f"console:{self.name}_count", kwargs=arguments) if self.count else "",
            "exports": f"console:{self.name}_export" if self.columns else "",
            "sorts": sort_links(request, self.sorts) if self.sorts else {},
            **(self.more(asked, rows) if self.more else {}),
        }

    def _asked(
        self, request: ConsoleRequest, arguments: Mapping[str, Any], *, form: FilterForm[FilterT] | None = None
    ) -> ListRequest[FilterT]:
        now = timezone.now()
        if self.read is not None:
            return ListRequest(request, None, self.read(request, **arguments), now, arguments)
        if form is None:
            assert self.form is not None
            form = self.form(request.GET)
        form.is_valid()
        return ListRequest(request, form, form.to_filter(), now, arguments)

    def _page(self, request: ConsoleRequest, /, **arguments: Any) -> HttpResponse:
        return show(request, f"{self.name}.html", self.context(request, **arguments))

    def _count(self, request: ConsoleRequest, /, **arguments: Any) -> HttpResponse:
        asked, count = self._asked(request, arguments), self.count
        assert count is not None
        return count_words(request, lambda most: count(asked, most), self.noun)

    def _export(self, request: ConsoleRequest, /, form: str, **arguments: Any) -> HttpResponseBase:
        try:
            asked = self._asked(request, arguments)
        except SearchFlaw as flaw:
            return refusal(request, 422, "Nothing exported", flaw.sentence, flaw.code)
        if asked.form is not None and asked.form.errors:
            return filter_refused(request, asked.form)

        def fetch(cursor: str | None, limit: int) -> tuple[Sequence[Row], str | None]:
            items, following = self.fetch(asked, cursor, limit)
            return [self._row(item) for item in items], following

        return export(self.file(asked) if self.file else self.name, form=form, columns=self.columns, fetch=fetch)

    def _row(self, item: Item) -> Row:
        if self.exported is not None:
            return self.exported(item)
        return item if isinstance(item, Mapping) else {name: getattr(item, name) for name in self.columns}
