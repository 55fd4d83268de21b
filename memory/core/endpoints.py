"""Where an address leads, as people may read it, and how long an endpoint asks to wait."""

import datetime as dt
import ipaddress
import math
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """Host and port, without whatever secret an address may carry, and whether that is this machine."""

    host: str
    local: bool


def endpoint_address(address: str) -> EndpointAddress:
    """Return where ``address`` leads. This machine is what its name alone tells for sure: loopback addresses.

    What cannot be read is told as ``the configured address``, elsewhere.
    """
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
    """Return for how many seconds Retry-After asks, as a number or a date (RFC 9110, 10.2.3); None if for nothing."""
    try:
        wait = float(header)
    except ValueError:
        try:
            until = parsedate_to_datetime(header.strip())
        except (ValueError, OverflowError):
            return None
        until = until if until.tzinfo else until.replace(tzinfo=dt.UTC)
        wait = until.timestamp() - time.time()
    # What is no number, or has no end, says nothing; what is past asks for nothing.
    return max(0.0, wait) if math.isfinite(wait) else None
