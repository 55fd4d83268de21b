"""Where an address leads, as people may read it."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Place:
    """Host and port, without whatever secret an address may carry, and whether that is this machine."""

    host: str
    local: bool


def endpoint_place(address: str) -> Place:
    """Return where ``address`` leads. This machine is what its name alone tells for sure: loopback addresses.

    What cannot be read is told as ``the configured address``, elsewhere.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host:
        return Place("the configured address", local=False)
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost" or host.endswith(".localhost")
    named = f"[{host}]" if ":" in host else host
    return Place(f"{named}:{port}" if port else named, local)
