"""The places of the console and their tabs: one table for the menu, the tabs below the heading, the list of keyboard
shortcuts and the command palette."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from memory.access.accounts import ROLES
from memory.console.people import may
from memory.llm.chat_request import model_configured
from memory.stores.current import MAIN, store_or_none

READER, OPERATOR, ADMINISTRATOR = ROLES


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab of a place. ``name`` is the name of its URL. ``also`` are the names of further pages that belong to the
    tab. ``least`` is the least role that may open it. With ``in_main``, only the store ``main`` has the tab."""

    name: str
    label: str
    also: tuple[str, ...] = ()
    least: str = READER
    in_main: bool = False

    def fit(self, name: str) -> int:
        """Return how closely the page ``name`` belongs to this tab. This is the length of the longest name of the tab
        with which ``name`` begins; 0 if there is none."""
        return max(
            (len(each) for each in (self.name, *self.also) if name == each or name.startswith(f"{each}_")), default=0
        )


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the menu. Typing ``g`` and then ``key`` opens it. ``kept`` are the URL parameters that its tabs
    share. ``counter`` names the member of ``Waiting`` whose number is shown beside the entry."""

    label: str
    key: str
    tabs: tuple[Tab, ...]
    kept: tuple[str, ...] = ()
    counter: str = ""

    def fit(self, name: str) -> int:
        """Return how closely the page ``name`` belongs to this place, 0 if it does not."""
        return max(tab.fit(name) for tab in self.tabs)


PLACES = (
    Place("Home", "h", (Tab("home", "Home"),)),
    Place(
        "Memories",
        "m",
        (
            Tab("lookup", "Live", ("topic",)),
            Tab("archived", "Archived"),
            Tab("released", "Released"),
            Tab("duplicates", "Duplicates", ("duplicate",)),
            Tab("add", "Add", ("extract", "extraction"), least=OPERATOR),
        ),
        counter="duplicates",
    ),
    Place(
        "Recalls",
        "r",
        (Tab("recalls", "Log", ("recall",)), Tab("lookup_agent", "Ask as an agent"), Tab("home_regretted", "Missed")),
    ),
    Place("Scopes", "s", (Tab("scopes", "Tree", ("scope",)), Tab("agents", "Agents", ("caller",)))),
    Place(
        "Tuning",
        "t",
        (
            Tab("salience", "Curve"),
            Tab("policy", "Values"),
            Tab("policy_rules", "Rules"),
            Tab("policy_versions", "Versions", ("policy_version", "policy_rollback")),
            Tab("policy_presets", "Presets"),
            Tab("salience_backtest", "Backtest"),
            Tab("policies", "All policies"),
        ),
        kept=("scope",),
    ),
    Place("Runs", "u", (Tab("runs", "Runs", ("run",)), Tab("pause", "Pause", least=OPERATOR)), counter="runs"),
    Place("Erasure", "e", (Tab("forget", "Erasure"), Tab("forget_receipts", "Receipts", ("forget_receipt",)))),
    Place("Activity", "a", (Tab("audit", "Activity"),)),
    Place(
        "Settings",
        ",",
        (
            Tab("keys", "Keys", ("key",)),
            Tab("people", "People", ("person",), least=ADMINISTRATOR),
            Tab("model", "Model"),
            Tab("schedules", "Jobs", ("schedule",)),
            Tab("transfer", "Export and import", least=OPERATOR),
            Tab("notifications", "Notifications", least=ADMINISTRATOR),
            Tab("stores", "Stores", ("store",), least=ADMINISTRATOR, in_main=True),
            Tab("account", "Account"),
        ),
        counter="failures",
    ),
)
ASSISTANT = Place("Assistant", "i", (Tab("assistant", "Assistant", ("conversation", "study")),))


@dataclass(frozen=True, slots=True)
class Action:
    """An action of the command palette. It opens the page ``name``, at the element with the id ``at``."""

    name: str
    label: str
    least: str
    at: str = ""


ACTIONS = (
    Action("pause", "Pause forgetting", OPERATOR),
    Action("runs", "New run", OPERATOR, at="new"),
    Action("add", "Add a memory", OPERATOR),
    Action("forget", "Forget memories: release or purge", OPERATOR),
    Action("transfer", "Import a file", OPERATOR),
    Action("keys_create", "New key", ADMINISTRATOR),
    Action("people_invite", "Invite a person", ADMINISTRATOR),
    Action("notifications_add", "New notification", ADMINISTRATOR),
)


@dataclass(frozen=True, slots=True)
class Link:
    """An entry of the menu or a tab, as the page shows it."""

    label: str
    address: str
    current: bool
    key: str = ""
    counter: str = ""


def places_shown(request: HttpRequest, role: str) -> list[Link]:
    """Return the menu for a role. The assistant is included if a model is configured, and always on its own pages."""
    here = _url_name(request)
    places: Iterable[Place] = (*PLACES, ASSISTANT) if model_configured() or ASSISTANT.fit(here) else PLACES
    current = _place(here)
    return [
        Link(
            place.label,
            reverse(f"console:{_tabs_allowed(place, role)[0].name}"),
            place is current,
            place.key,
            place.counter,
        )
        for place in places
    ]


def tabs_shown(request: HttpRequest, role: str, *, within: str = "") -> list[Link]:
    """Return the tabs of the place to which this page belongs; empty if the role may open fewer than two. If the name
    of this page does not show its place, ``within`` names another page of the place."""
    here = within or _url_name(request)
    place = _place(here)
    tabs = _tabs_allowed(place, role) if place else []
    if place is None or len(tabs) < 2:
        return []
    best = max(tab.fit(here) for tab in tabs)
    kept = {name: request.GET[name] for name in place.kept if request.GET.get(name)}
    tail = f"?{urlencode(kept)}" if kept else ""
    return [
        Link(tab.label, f"{reverse(f'console:{tab.name}')}{tail}", bool(best) and tab.fit(here) == best) for tab in tabs
    ]


def places_found(role: str, text: str) -> list[Link]:
    """Return links to the tabs that the role may open and that match ``text``. A tab matches if its label and the label
    of its place together contain every word. For an empty text, return only the first tab of each place."""
    places = (*PLACES, ASSISTANT) if model_configured() else PLACES
    found = []
    for place in places:
        tabs = _tabs_allowed(place, role)
        for tab in tabs if text else tabs[:1]:
            # The first tab has the label of its place, unless only the label of the tab itself contains the text.
            as_place = tab is tabs[0] and _fits(text, place.label)
            label = place.label if as_place else f"{place.label} › {tab.label}"
            if _fits(text, f"{place.label} {tab.label}"):
                key = place.key if tab is tabs[0] else ""
                found.append(Link(label, reverse(f"console:{tab.name}"), current=False, key=key))
    return found


def actions_found(role: str, text: str) -> list[Link]:
    """Return the actions that are allowed for the role and whose labels contain every word of ``text``."""
    return [
        Link(action.label, reverse(f"console:{action.name}") + (action.at and f"#{action.at}"), current=False)
        for action in ACTIONS
        if may(role, action.least) and _fits(text, action.label)
    ]


def _fits(text: str, label: str) -> bool:
    return all(word in label.casefold() for word in text.casefold().split())


def _url_name(request: HttpRequest) -> str:
    match = request.resolver_match
    return (match.url_name or "") if match else ""


def _place(here: str) -> Place | None:
    best = max((*PLACES, ASSISTANT), key=lambda place: place.fit(here))
    return best if best.fit(here) else None


def _tabs_allowed(place: Place, role: str) -> list[Tab]:
    here = store_or_none() == MAIN
    return [tab for tab in place.tabs if may(role, tab.least) and (here or not tab.in_main)]
