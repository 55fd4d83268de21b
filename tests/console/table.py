"""The table of the console's addresses, as Django resolves them, with an argument for everything they ask for.

What is not known here fails a test by name, so that no page can be forgotten.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.urls import URLPattern, URLResolver, get_resolver, reverse

# What is no page: the API, Django's admin, and what machines ask.
NO_PAGES = ("v1/", "mcp", "admin/", "livez", "readyz", "metrics")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

# An argument for each name that addresses have. Nothing in the store needs to go by it.
ARGUMENTS: Mapping[str, Any] = {
    "topic_id": uuid.UUID(int=7),
    "run_id": uuid.UUID(int=7),
    "key_id": uuid.UUID(int=7),
    "pair_id": uuid.UUID(int=7),
    "extraction_id": uuid.UUID(int=7),
    "conversation_id": uuid.UUID(int=7),
    "place": 7,
    "study_id": uuid.UUID(int=7),
    "import_id": uuid.UUID(int=7),
    "form": "csv",
    "schedule_id": 7_000_000,
    "task_id": "no-such-job",
    "listing_id": uuid.UUID(int=7),
    "receipt_id": uuid.UUID(int=7),
    "access_id": 7_000_000,
    "target_id": uuid.UUID(int=7),
    "delivery_id": uuid.UUID(int=7),
    "what": "scope",
    "person_id": 7_000_000,
    "store_name": "no_such_store",
    "uidb64": "Nw",
    "token": "no-such-token",
}
# What stands behind the question mark where a page is about something.
QUERIES: Mapping[str, Mapping[str, str]] = {
    "lookup": {"q": "topic"},
    "lookup_count": {"q": "kind:observation"},
    "lookup_facets": {"q": "topic"},
    "lookup_agent": {"q": "topic"},
    "lookup_export": {"q": "scope:/"},
    "topic_field": {"name": "city"},
    "policies": {"counts": "1"},
    "duplicates_merge": {"all": "1"},
    "policy_version": {"scope": "/", "number": "1"},
    "policy_rollback": {"scope": "/", "to": "1"},
    "recall": {"again": "1"},
    "caller": {"name": "key:agent"},
    "scope": {"scope": "/place"},
}


@dataclass(frozen=True)
class Address:
    """One line of the table."""

    name: str
    route: str
    roles: Mapping[str, str] | None
    arguments: tuple[str, ...] = ()
    converters: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    @property
    def unknown(self) -> list[str]:
        """Arguments that no one has said anything about."""
        return [name for name in self.arguments if name not in ARGUMENTS]

    @property
    def is_export(self) -> bool:
        """Whether a file comes from here, and no page."""
        return "form" in self.arguments or self.name.endswith("_export")

    def path(self, **given: Any) -> str:
        """Return the address, with the arguments given and examples for the others."""
        known = {name: given.get(name, ARGUMENTS[name]) for name in self.arguments}
        return reverse(f"console:{self.name}", kwargs=known)

    def url(self, *, query: Mapping[str, str] | None = None, **given: Any) -> str:
        """Return the address with what stands behind the question mark."""
        members = {**QUERIES.get(self.name, {}), **(query or {})}
        return self.path(**given) + (f"?{urlencode(members)}" if members else "")


def _walk(patterns: list[Any], route: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in patterns:
        here = route + str(pattern.pattern)
        if here.startswith(NO_PAGES):
            continue
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, here)
        else:
            yield here, pattern


def addresses() -> list[Address]:
    """Return every address of the site that is a page or a part of one, in the order of the table."""
    return [
        Address(
            pattern.name or f"({route})",
            route,
            getattr(pattern.callback, "console_roles", None),
            tuple(pattern.pattern.converters),
            dict(pattern.pattern.converters),
        )
        for route, pattern in _walk(get_resolver().url_patterns)
    ]


def pages() -> list[Address]:
    """Return what answers GET and is neither sign-in nor a file."""
    return [
        address
        for address in addresses()
        if address.roles and address.roles.get("GET", "anybody") != "anybody" and not address.is_export
    ]
