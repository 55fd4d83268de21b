"""Stores: the list of stores, and opening another store. The list is for administrators of the installation, and only
the store ``main`` has it."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.urls import path

from memory.console.fields import ReasonForm, problem_shown
from memory.console.list_page import FilterForm, ListPage, ListRequest
from memory.console.page import ADMINISTRATOR, READER, ConsoleRequest, go, page, show
from memory.console.people import store_open
from memory.core.cursors import cursor_make, cursor_parse
from memory.core.problem_codes import ProblemCode
from memory.jobs.store_list import StoreFigures, stores_count, stores_dropped, stores_figures, stores_named
from memory.jobs.stores import drop_refuse, store_create, store_drop, store_get, store_here
from memory.jobs.tasks import store_move_enqueue
from memory.stores.citus import move_plan, nodes_list, stores_nodes
from memory.stores.current import MAIN

MAX_DROPPED = 10


class StoresForm(FilterForm[str]):
    """The filter of the list."""

    name = forms.CharField(
        required=False, max_length=40, label="Name", widget=forms.TextInput(attrs={"type": "search"})
    )

    def to_filter(self) -> str:
        """Return the text that the names of listed stores contain."""
        return str(self.cleaned_data.get("name", ""))


class StoreForm(ReasonForm):
    """A new store."""

    name = forms.CharField(
        label="Name",
        max_length=40,
        help_text="1 to 40 characters a-z, 0-9 and _, beginning with a letter. It cannot be changed later.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "off", "spellcheck": "false"}),
    )
    node = forms.ChoiceField(required=False, label="Node", help_text="By default, the cluster chooses.")
    field_order = ["name", "node", "reason"]

    def __init__(self, data: Any, *, nodes: Sequence[str]) -> None:
        super().__init__(data)
        self.fields["node"].choices = [("", ""), *((node, node) for node in nodes)]  # type: ignore[attr-defined]
        if not nodes:
            del self.fields["node"]


class NodeForm(ReasonForm):
    """The node to which a store moves."""

    node = forms.ChoiceField(label="Node")
    field_order = ["node", "reason"]

    def __init__(self, data: Any, *, nodes: Sequence[str]) -> None:
        super().__init__(data)
        self.fields["node"].choices = [(node, node) for node in nodes]  # type: ignore[attr-defined]


class DropForm(ReasonForm):
    """The reason of a drop, and the typed name of the store."""

    typed = forms.CharField(
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "off", "spellcheck": "false"})
    )
    field_order = ["reason", "typed"]

    def __init__(self, data: Any, *, name: str) -> None:
        super().__init__(data)
        self._name = name
        self.fields["typed"].label = f"Type “{name}” to confirm"

    def clean_typed(self) -> str:
        """Return the typed name. Raises ``ValidationError`` if it does not match."""
        if (typed := str(self.cleaned_data["typed"])) != self._name:
            raise ValidationError("The name does not match. Nothing was dropped.", code=ProblemCode.INVALID_MEMBER)
        return typed


def _main_require(request: ConsoleRequest) -> None:
    """Raise ``Http404`` outside ``main``: administrators of other stores are not administrators of the installation."""
    if request.store != MAIN:
        raise Http404


def _stores(asked: ListRequest[str], cursor: str | None, limit: int) -> tuple[Sequence[StoreFigures], str | None]:
    _main_require(asked.request)
    after = None if cursor is None else cursor_parse(cursor, str)[0]
    found = stores_named(asked.filter, after=after, limit=limit + 1)
    return found[:limit], cursor_make(found[limit - 1].name) if len(found) > limit else None


def _count(asked: ListRequest[str], most: int) -> int:
    _main_require(asked.request)
    return stores_count(asked.filter, at_most=most)


# Stores by name, and the receipts of the last dropped ones. Six queries for a page, eight on a cluster, one for the
# count.
STORES = ListPage(
    name="stores",
    address="settings/stores/",
    form=StoresForm,
    fetch=_stores,
    count=_count,
    noun="store",
    more=lambda _asked, _rows: {"dropped": stores_dropped(most=MAX_DROPPED)},
    least=ADMINISTRATOR,
)


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def stores_create(request: ConsoleRequest) -> HttpResponse:
    """Ask for a name, a reason, and on a cluster for a node. A posted form creates the store, with the queries of
    ``store_create``. If it is not on the node, the worker moves it there."""
    _main_require(request)
    form = StoreForm(request.POST if request.method == "POST" else None, nodes=[str(node) for node in nodes_list()])
    if form.is_valid():
        said: dict[str, Any] = form.cleaned_data
        with problem_shown(form, "name"):
            made = store_create(said["name"], actor=request.principal.actor, reason=said["reason"])
            node = said.get("node", "")
            if node and [node] != [str(each) for each in stores_nodes().get(made.name, [])]:
                store_move_enqueue(made.name, node, actor=request.principal.actor, reason=said["reason"])
            messages.success(request, f"Created the store {made.name}. Open it to create keys and to invite people.")
            return go(request, "console:stores")
    return show(request, "store_create.html", {"form": form}, status=422 if form.errors else 200)


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def store_moving(request: ConsoleRequest, store_name: str) -> HttpResponse:
    """Ask for a node and a reason. A posted form lets the worker move the store. About fifteen queries."""
    _main_require(request)
    (store,) = stores_figures([store_here(store_name)])
    nodes = [str(node) for node in nodes_list() if str(node) != store.node]
    form = NodeForm(request.POST if request.method == "POST" else None, nodes=nodes)
    if form.is_valid():
        said: dict[str, Any] = form.cleaned_data
        with problem_shown(form, "node"):
            move_plan(store.name, said["node"])
            store_move_enqueue(store.name, said["node"], actor=request.principal.actor, reason=said["reason"])
            messages.success(
                request, f"The worker moves the store {store.name} to {said['node']}. It stays in use meanwhile."
            )
            return go(request, "console:stores")
    return show(
        request, "store_move.html", {"store": store, "form": form, "nodes": nodes}, status=422 if form.errors else 200
    )


@page(get=ADMINISTRATOR, post=ADMINISTRATOR)
def store_dropping(request: ConsoleRequest, store_name: str) -> HttpResponse:
    """Show what a drop removes. A form with the typed name drops the store. Three queries, plus those of
    ``store_drop``."""
    _main_require(request)
    drop_refuse(store_name)
    (store,) = stores_figures([store_get(store_name)])
    form = DropForm(request.POST if request.method == "POST" else None, name=store.name)
    if form.is_valid():
        store_drop(store.name, actor=request.principal.actor, reason=form.cleaned_data["reason"])
        messages.success(request, f"Dropped the store {store.name}. Its receipt is below.")
        return go(request, "console:stores")
    return show(request, "store_drop.html", {"store": store, "form": form}, status=422 if form.errors else 200)


@page(post=READER, behind=True)
def store_opening(request: ConsoleRequest) -> HttpResponse:
    """Open another store of the person, and redirect to its Home page. At most one query."""
    store_open(request, request.POST.get("store", ""))
    return go(request, "console:home")


urlpatterns = [
    *STORES.urlpatterns,
    path("settings/stores/new/", stores_create, name="stores_create"),
    path("settings/stores/<slug:store_name>/move/", store_moving, name="store_move"),
    path("settings/stores/<slug:store_name>/drop/", store_dropping, name="store_drop"),
    path("stores/open/", store_opening, name="store_open"),
]
