"""Checks of webhook addresses. An address must be public and use https, unless ``MEMSTATE_NOTIFY_PRIVATE_ADDRESSES``
allows private addresses and http."""

import ipaddress
import socket
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from memory.core.errors import ValueRefused

# Networks of IPv6 addresses that contain an IPv4 address. The IPv4 address could be private.
_TRANSLATED = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")))


def address_refuse(address: str) -> SplitResult:
    """Return the parts of the address of a webhook. Runs no query and no DNS lookup.

    Raises ``ValueRefused`` if the address is neither http nor https, contains credentials, or has an IP address that
    ``ip_allowed`` excludes. http needs ``MEMSTATE_NOTIFY_PRIVATE_ADDRESSES``.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https") or port == 0 or not address.isprintable() or " " in address:
        raise _refused("Enter a webhook such as https://hooks.example/memory.")
    if parts.username or parts.password:
        raise _refused("The address must not contain a name or a password.")
    if parts.scheme == "http" and not settings.MEMSTATE_NOTIFY_PRIVATE_ADDRESSES:
        raise _refused("Use https: messages over http could be read on the way.")
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        return parts
    if not ip_allowed(literal):
        raise _private()
    return parts


def address_resolve(parts: SplitResult) -> str:
    """Return an IP address of a webhook's host. The connection must use this address, because a second lookup could
    return a different one. Raises ``ValueRefused`` if any address of the host is not allowed, and ``OSError`` if the
    host has no address."""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    addresses = [str(sockaddr[0]) for *_kind, sockaddr in found]
    for each in addresses:
        if not ip_allowed(ipaddress.ip_address(each.partition("%")[0])):
            raise _private()
    return addresses[0]


def ip_allowed(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether messages may be sent to this address. Link-local addresses, such as those of the metadata services
    of clouds, are never allowed."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return ip_allowed(address.ipv4_mapped)
        if any(address in network for network in _TRANSLATED):
            return False
    if address.is_multicast or address.is_unspecified or address.is_link_local:
        return False
    return address.is_global or (settings.MEMSTATE_NOTIFY_PRIVATE_ADDRESSES and address.is_private)


def _refused(sentence: str) -> ValueRefused:
    return ValueRefused(sentence, member="address")


def _private() -> ValueRefused:
    return ValueRefused(
        "The address is not public. MEMSTATE_NOTIFY_PRIVATE_ADDRESSES allows private ones.", member="address"
    )
