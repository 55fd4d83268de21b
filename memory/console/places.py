"""The places of the console and their tabs: one table for the menu, the tabs below the heading, the list of keys and
the command palette."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from memory.access.accounts import ROLES
from memory.console.people import may
from memory.llm.chat_request import model_configured

READER, OPERATOR, ADMINISTRATOR = ROLES


@dataclass(frozen=True, slots=True)
class Tab:
    """A page of a place: the name of its URL, its label, the names of pages below it, and the least role it needs."""

    name: str
    label: str
    also: tuple[str, ...] = ()
    least: str = READER

    def fit(self, name: str) -> int:
        """Return how closely the page ``name`` belongs here: the length of the name it begins with, 0 for no."""
        return max(
            (len(each) for each in (self.name, *self.also) if name == each or name.startswith(f"{each}_")), default=0
        )


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the menu. ``key`` goes there after ``g``. ``kept`` are members of the address that its tabs share.
    ``counter`` names the number of ``Waiting`` beside it."""

    label: str
    key: str
    tabs: tuple[Tab, ...]
    kept: tuple[str, ...] = ()
    counter: str = ""

    def fit(self, name: str) -> int:
        """Return how closely the page ``name`` belongs here, 0 for not at all."""
        return max(tab.fit(name) for tab in self.tabs)


PLACES = (
    Place("Home", "o", (Tab("home", "Home"),)),
    Place(
        "Memories",
        "l",
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
        "q",
        (Tab("recalls", "Log", ("recall",)), Tab("lookup_agent", "Ask as an agent"), Tab("home_regretted", "Regret")),
    ),
    Place("Scopes", "c", (Tab("scopes", "Tree", ("scope",)), Tab("agents", "Agents", ("caller",)))),
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
    Place("Runs", "r", (Tab("runs", "Runs", ("run",)), Tab("pause", "Pause", least=OPERATOR)), counter="runs"),
    Place("Erasure", "f", (Tab("forget", "Forget"), Tab("forget_receipts", "Receipts", ("forget_receipt",)))),
    Place("Activity", "u", (Tab("audit", "Activity"),)),
    Place(
        "Settings",
        "k",
        (
            Tab("keys", "Keys", ("key",)),
            Tab("people", "People", ("person",), least=ADMINISTRATOR),
            Tab("model", "Model"),
            Tab("schedules", "Jobs", ("schedule",)),
            Tab("transfer", "Export and import", least=OPERATOR),
            Tab("notifications", "Notifications", least=ADMINISTRATOR),
            Tab("account", "Account"),
        ),
        counter="failures",
    ),
)
ASSISTANT = Place("Assistant", "a", (Tab("assistant", "Assistant", ("conversation", "study")),))


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do, on the page ``name``."""

    name: str
    label: str
    least: str


# What the command palette offers to do.
ACTIONS = (
    Action("pause", "Pause forgetting", OPERATOR),
    Action("runs_start", "New run", OPERATOR),
    Action("extract", "Add a memory", OPERATOR),
    Action("transfer", "Import a file", OPERATOR),
    Action("keys_create", "New key", ADMINISTRATOR),
    Action("people_invite", "Invite a person", ADMINISTRATOR),
    Action("notifications_add", "New notification", ADMINISTRATOR),
)


@dataclass(frozen=True, slots=True)
class Link:
    """A drawn line of the menu or a drawn tab."""

    label: str
    address: str
    current: bool
    key: str = ""
    counter: str = ""


def places_shown(request: HttpRequest, role: str) -> list[Link]:
    """Return the menu for a role. The assistant is shown where a model is configured, and on its own pages."""
    here = _here(request)
    places: Iterable[Place] = (*PLACES, ASSISTANT) if model_configured() or ASSISTANT.fit(here) else PLACES
    current = _place(here)
    return [
        Link(place.label, reverse(f"console:{_open(place, role)[0].name}"), place is current, place.key, place.counter)
        for place in places
    ]


def tabs_shown(request: HttpRequest, role: str, *, within: str = "") -> list[Link]:
    """Return the tabs of the place of this page, or nothing where it has only one. ``within`` names the page to which
    this one belongs, if its own name does not say it."""
    here = within or _here(request)
    place = _place(here)
    tabs = _open(place, role) if place else []
    if place is None or len(tabs) < 2:
        return []
    best = max(tab.fit(here) for tab in tabs)
    kept = {name: request.GET[name] for name in place.kept if request.GET.get(name)}
    tail = f"?{urlencode(kept)}" if kept else ""
    return [
        Link(tab.label, f"{reverse(f'console:{tab.name}')}{tail}", bool(best) and tab.fit(here) == best) for tab in tabs
    ]


def places_found(role: str, text: str) -> list[Link]:
    """Return places and their tabs that have every word of ``text`` in their names, as far as the role may open them.
    The names of places alone for an empty text."""
    places = (*PLACES, ASSISTANT) if model_configured() else PLACES
    found = []
    for place in places:
        tabs = _open(place, role)
        for tab in tabs if text else tabs[:1]:
            # The first tab stands for its place, unless only its own name has the text.
            as_place = tab is tabs[0] and _fits(text, place.label)
            label = place.label if as_place else f"{place.label} › {tab.label}"
            if _fits(text, f"{place.label} {tab.label}"):
                key = place.key if tab is tabs[0] else ""
                found.append(Link(label, reverse(f"console:{tab.name}"), current=False, key=key))
    return found


def actions_found(role: str, text: str) -> list[Link]:
    """Return actions that have every word of ``text`` in their names, as far as the role may do them."""
    return [
        Link(action.label, reverse(f"console:{action.name}"), current=False)
        for action in ACTIONS
        if may(role, action.least) and _fits(text, action.label)
    ]


def _fits(text: str, label: str) -> bool:
    return all(word in label.casefold() for word in text.casefold().split())


def _here(request: HttpRequest) -> str:
    match = request.resolver_match
    return (match.url_name or "") if match else ""


def _place(here: str) -> Place | None:
    best = max((*PLACES, ASSISTANT), key=lambda place: place.fit(here))
    return best if best.fit(here) else None


def _open(place: Place, role: str) -> list[Tab]:
    return [tab for tab in place.tabs if may(role, tab.least)]
