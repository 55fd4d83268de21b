"""Paths of files and routes, and points on the map."""

import re
from typing import Final

from memory.text.identifiers.tables import FILE_ENDINGS
from memory.text.identifiers.view import TAKEN, WORD, TextView
from memory.text.identifiers.web import domain_like, trimmed

_FRESH: Final = rf"(?<!{WORD})(?<![./\\~>)\]@{TAKEN}-])(?<!::)(?!(?<=<)/\w{{1,20}}>)"
_INSIDE: Final = rf"(?:{WORD}|[.+%~@:$*&=#/{{}}-])"
_FILE_URL: Final = re.compile(r"(?<!\w)file:/{1,3}(?=[/\w~])((?:[A-Za-z]:)?[^\s\"'<>|]{1,500})", re.IGNORECASE)
_QUOTED: Final = re.compile(r"(?<=[\"'])((?:[A-Za-z]:[\\/]|\\\\\w|~?/(?=[\w.~]))[^\"'\n<>|]{1,250})(?=[\"'])")
_WINDOWS: Final = re.compile(
    rf"{_FRESH}((?:[A-Za-z]:[\\/]|\\\\(?=\w))(?:[\\/]*(?:Program Files(?: \(x86\))?|Documents and Settings))?"
    rf"[^\s\"'<>|*?:;,，。、-〿（）{TAKEN}]{{0,500}})"
)
_UNIX: Final = re.compile(rf"{_FRESH}((?:~(?:{WORD}|-){{0,32}}+|\.{{1,2}})?/(?=[\w.{{:~$*@-]){_INSIDE}{{1,500}})")
_RELATIVE: Final = re.compile(rf"{_FRESH}(?<![:#+])((?:{WORD}|[.+-])++(?:/(?:{WORD}|[.+-])++)++)/?")
_FILE: Final = re.compile(rf"{_FRESH}(?<!\+)((?:{WORD}|[+-])++(?:\.(?:{WORD}|[+-])++)++)")
_ENDING: Final = re.compile(r"\.\w")
_DECIMAL: Final = re.compile(
    rf"(?<!{WORD})(?<![.,-])(-?\d{{1,3}}\.\d{{2,12}})\s?°?\s?([NSns](?![a-z]))?\s?[,;/ ]\s?"
    rf"(-?\d{{1,3}}\.\d{{2,12}})\s?°?\s?([EWew](?![a-z]))?(?![\w.]?\d)"
)
_DEGREES: Final = re.compile(
    r"(?<![\d.])(\d{1,2})°\s?(\d{1,2})['′]\s?(?:(\d{1,2}(?:\.\d{1,6})?)(?:[\"″]|'')\s?)?([NSns])[\s,;]{0,3}"
    r"(\d{1,3})°\s?(\d{1,2})['′]\s?(?:(\d{1,2}(?:\.\d{1,6})?)(?:[\"″]|'')\s?)?([EWew])(?!\w)"
)


def paths_find(view: TextView) -> None:
    """Add paths that begin at a root, a drive, a home or the current folder. Linear in the text."""
    text = view.text
    if "/" not in text and "\\" not in text:
        return
    for match in view.matches(_FILE_URL, likely=":/" in text):
        name = trimmed(match[1])
        whole = name if re.match(r"[A-Za-z]:|/", name) else f"/{name}"
        _add(view, whole, match.start(), match.start(1) + len(name))
    for match in view.matches(_QUOTED, likely='"' in text or "'" in text):
        name = match[1].rstrip(" .,;")
        if " " not in name or (len(re.findall(r"[\\/]+", name)) > 1 and not re.search(r"[,;:.] ", name)):
            _add(view, name, match.start(1), match.start(1) + len(name))
    for match in view.matches(_WINDOWS, likely="\\" in text or ":/" in text):
        _add(view, name := trimmed(match[1]), match.start(1), match.start(1) + len(name))
    for match in view.matches(_UNIX, likely="/" in view.text):
        name = trimmed(match[1])
        if name.strip("/.~"):
            _add(view, name, match.start(1), match.start(1) + len(name))


def files_find(view: TextView) -> None:
    """Add relative paths and file names, such as ``src/app/main.py`` and ``report.pdf``."""
    for match in view.matches(_RELATIVE, likely="/" in view.text):
        name = match[1].rstrip(".+-")
        first, *_middle, last = name.split("/")
        if (_file_like(last) or name.count("/") > 1) and not domain_like(first) and re.search(r"[^\W\d]", name):
            if not _file_like(last) and any(sign.isdigit() for sign in name):
                # "INV/2024/001" is a code.
                continue
            _add(view, name, match.start(1), match.start(1) + len(name))
    for match in view.matches(_FILE, likely=_ENDING.search(view.text)):
        if _file_like(match[1]):
            _add(view, match[1], match.start(1), match.end(1))


def points_find(view: TextView) -> None:
    """Add points on the map, rounded to four decimals of a degree (about ten metres)."""
    for match in view.matches(_DEGREES, likely="°" in view.text):
        north = _degrees(match[1], match[2], match[3], match[4])
        east = _degrees(match[5], match[6], match[7], match[8])
        _point(view, north, east, match)
    for match in view.matches(_DECIMAL, likely=view.digits > 5 and "." in view.text):
        is_explicit = bool(match[2]) or bool(match[4]) or "°" in match[0]
        fine = min(len(match[1].split(".")[1]), len(match[3].split(".")[1])) > 2
        if is_explicit or (fine and re.search("[,;/]", match[0])):
            north = float(match[1]) * (-1 if (match[2] or "").upper() == "S" else 1)
            east = float(match[3]) * (-1 if (match[4] or "").upper() == "W" else 1)
            _point(view, north, east, match)


def path_canonical(path: str) -> str:
    """Return a path with single forward slashes, without ``./`` and without a final slash. Windows paths and bare file
    names are in lower case."""
    windows = "\\" in path or path[1:2] == ":"
    plain = path.replace("\\", "/")
    share = windows and plain.startswith("//")
    plain = re.sub("/{2,}", "/", plain)
    plain = re.sub(r"(?<=/)(?:\./)+", "", plain).removeprefix("./")
    plain = ("/" if share else "") + (plain.rstrip("/") or "/")
    return plain.casefold() if windows or "/" not in plain else plain


def _add(view: TextView, name: str, start: int, end: int) -> None:
    view.add("path", path_canonical(name), start, end)


def _file_like(name: str) -> bool:
    stem, dot, ending = name.rpartition(".")
    return (
        bool(dot and stem.strip("."))
        and (len(ending) > 1 or (len(stem) > 1 and stem.replace("_", "").replace("-", "").isalnum()))
        and ending.casefold() in FILE_ENDINGS
        and (ending.islower() or ending.isupper() or ending.isdigit())
    )


def _degrees(degrees: str, minutes: str, seconds: str | None, side: str) -> float:
    value = int(degrees) + int(minutes) / 60 + float(seconds or 0) / 3600
    return -value if side.upper() in "SW" else value


def _point(view: TextView, north: float, east: float, match: re.Match[str]) -> None:
    if abs(north) <= 90 and abs(east) <= 180:
        end = match.end() - (len(match[0]) - len(match[0].rstrip()))
        view.add("coordinates", f"{north + 0.0:.4f},{east + 0.0:.4f}".replace("-0.0000", "0.0000"), match.start(), end)
