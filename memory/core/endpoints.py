"""The addresses of endpoints without secrets, and the waiting time that an endpoint requests."""

import datetime as dt
import ipaddress
import math
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """The host and the port of an address, without credentials. ``local`` means that it is a loopback address."""

    host: str
    local: bool


def endpoint_address(address: str) -> EndpointAddress:
    """Return the host and the port of ``address``, or the text ``the configured address`` if it is malformed. Only
    loopback addresses count as local."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host:
        return EndpointAddress("the configured address", local=False)
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost" or host.endswith(".localhost")
    named = f"[{host}]" if ":" in host else host
    return EndpointAddress(f"{named}:{port}" if port else named, local)


def retry_after_seconds(header: str) -> float | None:
    """Return the seconds to wait that a Retry-After header requests as a number or a date (RFC 9110, 10.2.3). Return
    None for a malformed header."""
    try:
        wait = float(header)
    except ValueError:
        try:
            until = parsedate_to_datetime(header.strip())
        except (ValueError, OverflowError):
            return None
        until = until if until.tzinfo else until.replace(tzinfo=dt.UTC)
        wait = until.timestamp() - time.time()
    # A date in the past means no wait.
    return max(0.0, wait) if math.isfinite(wait) else None
