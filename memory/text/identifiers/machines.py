"""Identifiers of machines: UUIDs, IP and MAC addresses, hashes, vehicle identification numbers."""

import ipaddress
import re
from typing import Final

from memory.text.identifiers.view import WORD, TextView
from memory.text.lazy_pattern import lazy_pattern

_FRESH: Final = rf"(?<!{WORD})"
_ENDS: Final = rf"(?!{WORD})"
_UUID: Final = lazy_pattern(
    rf"{_FRESH}(?<!\w-)(?:urn:uuid:)?(\{{?)([0-9A-Fa-f]{{8}}(?:-[0-9A-Fa-f]{{4}}){{3}}-[0-9A-Fa-f]{{12}}|[0-9A-Fa-f]{{32}}){_ENDS}(?!-\w)(\}}?)",
    re.IGNORECASE,
)
_MAC: Final = lazy_pattern(
    rf"{_FRESH}(?<![:.-])((?:[0-9A-Fa-f]{{2}}([:-]))(?:[0-9A-Fa-f]{{2}}\2){{4}}[0-9A-Fa-f]{{2}}|(?:[0-9A-Fa-f]{{4}}\.){{2}}[0-9A-Fa-f]{{4}}){_ENDS}(?![:-]\w)"
)
_IPV4: Final = lazy_pattern(
    rf"{_FRESH}(?<!\w[.-])(\d{{1,3}}(?:\.\d{{1,3}}){{3}}){_ENDS}(?!\.\d)(?:/(\d{{1,2}})(?!\d|\.\d|/\w)(?!{WORD}))?(?!/\w)"
)
_IPV6: Final = lazy_pattern(
    rf"{_FRESH}(?<![:.])(?=[0-9A-Fa-f.]{{0,4}}:)([0-9A-Fa-f:]{{2,45}}+(?:(?<=:)\d{{1,3}}(?:\.\d{{1,3}}){{3}}|(?:\.\d{{1,3}}){{3}})?)(%\w{{1,20}})?(?:/(\d{{1,3}})(?!\d))?"
)
_HASH: Final = lazy_pattern(rf"{_FRESH}(?<!\w-)(?:0[xX])?([0-9A-Fa-f]{{7,128}}){_ENDS}(?!-\w)")
_VIN: Final = lazy_pattern(rf"{_FRESH}(?<!\w-)([A-HJ-NPR-Za-hj-npr-z0-9]{{17}}){_ENDS}(?!-\w)")

# Cheap tests before costly searches.
_SEVEN: Final = lazy_pattern(r"[0-9A-Fa-f]{7}")
_SEVENTEEN: Final = lazy_pattern(r"[A-Za-z0-9]{17}")
_PAIRS: Final = lazy_pattern(r"[0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}[:-]|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.")


def machines_find(view: TextView) -> None:
    """Add identifiers of machines, networks and versions of code. Linear in the text."""
    hexadecimal = _SEVEN.search(view.text) is not None
    for match in view.matches(_UUID, likely=hexadecimal):
        closed = match.end() if bool(match[1]) == bool(match[3]) else match.end(2)
        start = match.start() if closed == match.end() else match.start(2)
        view.add("uuid", match[2].replace("-", "").lower(), start, closed)
    for match in view.matches(_MAC, likely=max(map(view.text.count, ":-.")) > 1 and _PAIRS.search(view.text)):
        bare = re.sub("[:.-]", "", match[1]).lower()
        view.add("mac", ":".join(bare[at : at + 2] for at in range(0, 12, 2)), match.start(), match.end())
    if view.text.count(":") > 1:
        _ipv6(view)
    if view.text.count(".") > 2:
        _ipv4(view)
    for match in view.matches(_HASH, likely=hexadecimal):
        name = match[1].lower()
        # "abc1234" is a code, which may also be written "ABC-1234"; "1e100" is a number.
        if len(name) > 31 and not name.isdigit():
            view.add("hash", name, match.start(), match.end())
        elif match[1].islower() and not re.fullmatch(r"[a-f]+\d+|\d+[a-f]+|\d+|[a-f]+|\d+e\d+", name):
            view.add("hash", name, match.start(), match.end(), marks=(f"*name:{name}",))
    for match in view.matches(_VIN, likely=view.digits > 3 and _SEVENTEEN.search(view.text)):
        name = match[1].lower()
        if sum(sign.isdigit() for sign in name) > 3 and sum(sign.isalpha() for sign in name) > 3:
            view.add("vin", name, match.start(), match.end())


def _ipv4(view: TextView) -> None:
    for match in view.matches(_IPV4):
        parts = [int(part) for part in match[1].split(".")]
        if max(parts) > 255:
            continue
        address = ".".join(map(str, parts))
        if match[2] is None:
            view.add("ip", address, match.start(), match.end())
        elif int(match[2]) <= 32:
            view.add("cidr", f"{address}/{int(match[2])}", match.start(), match.end())


def _ipv6(view: TextView) -> None:
    for match in view.matches(_IPV6):
        name = match[1]
        if not match[2] and not match[3]:
            name = name[:-1] if name.endswith(":") and not name.endswith("::") else name
        if name.count(":") < 2 or len(name) < 3 or (name.endswith("::") and name.count(":") == 2 and len(name) < 4):
            continue
        end = match.end() if name == match[1] else match.start() + len(name)
        if end < len(view.text) and (view.text[end].isalnum() or view.text[end] == "_"):
            continue
        try:
            address = ipaddress.IPv6Address(name)
        except ValueError:
            continue
        plain = str(address.ipv4_mapped) if address.ipv4_mapped else str(address)
        if match[3] is None:
            view.add("ip", plain, match.start(), end)
        elif int(match[3]) <= 128:
            view.add("cidr", f"{plain}/{int(match[3])}", match.start(), end)
