"""Internet addresses and names: URLs, domains, DOIs, e-mail addresses, handles, hashtags."""

import ipaddress
import re
from functools import lru_cache
from typing import Any, Final

from memory.text.identifiers.tables import FILE_ENDINGS, RESERVED
from memory.text.identifiers.view import TAKEN, UNSPACED, WORD, TextView
from memory.text.lazy_pattern import lazy_pattern

_FRESH: Final = rf"(?<!{WORD})"
_URL: Final = lazy_pattern(
    # Characters of scripts without spaces continue a path only after a separator: "/查看", but not "https://x.io查看".
    rf"(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9+.-]{{1,20}})://((?:(?:(?<=[/=_%#&?-]){UNSPACED}++)|(?!{UNSPACED})[^\s<>\"'{{}}|\\^、-〿，；：！？（）「」{TAKEN}])++)"
)
_GIT: Final = lazy_pattern(r"(?<![\w.@-])git@([\w.-]{1,100}):([\w./~-]{1,200})")
_DOI: Final = lazy_pattern(
    rf"(?<!{WORD})(?<![./])(?:https?://(?:dx\.)?doi\.org/|doi:?\s{{0,3}})?(10\.\d{{4,9}}/(?:(?!{UNSPACED})[^\s\"'<>，；、-〿（）]){{1,200}})",
    re.IGNORECASE,
)
_EMAIL: Final = lazy_pattern(
    rf"{_FRESH}(?<![.+%'~@-])((?:{WORD}|[.+%'~-]){{1,80}}+)@((?:{WORD}|-)++(?:\.(?:{WORD}|-)++)++|localhost\b)"
)
_EMAIL_SPELLED: Final = lazy_pattern(
    rf"{_FRESH}(?<![.+%-])((?:{WORD}|[.+%-]){{1,64}}+)(?:\s?[\[({{]\s?(?:at|@)\s?[\])}}]\s?| at )"
    rf"((?:{WORD}|-){{1,63}}+(?:(?:\.|\s?[\[({{]\s?(?:dot|\.)\s?[\])}}]\s?| dot )(?:{WORD}|-){{1,63}}+){{1,4}})",
    re.IGNORECASE,
)
_SPELLED_DOT: Final = lazy_pattern(r"\s?[\[({]\s?(?:dot|\.)\s?[\])}]\s?| dot ", re.IGNORECASE)
_HANDLE: Final = lazy_pattern(
    rf"{_FRESH}(?<![@./\\+{TAKEN}-])@((?:{WORD}(?:{WORD}|[.-]){{0,100}}+|{UNSPACED}{{1,20}}+)(?:[@:](?:{WORD}|-)++(?:\.(?:{WORD}|-)++)++)?)"
)
_HASHTAG: Final = lazy_pattern(rf"{_FRESH}(?<![#&/{TAKEN}-])#((?:{WORD}(?:{WORD}|-){{0,100}}+|{UNSPACED}{{1,20}}+))")
_DOTTED: Final = lazy_pattern(
    rf"{_FRESH}(?<![@./\\:{TAKEN}-])((?:{WORD}|-)++(?:\.(?:{WORD}|-)++)++)(:\d{{2,5}}(?![\d:]))?(/(?:(?!{UNSPACED})[^\s<>\"'{{}}|\\^、-〿，；：！？（）{TAKEN}])*+|\?(?=\w)[^\s<>\"']*+)?"
)
_LABEL_ENDS: Final = lazy_pattern(r"\.[^\W\d_]")
_LOCAL: Final = lazy_pattern(
    rf"{_FRESH}(?<![@./\\:{TAKEN}-])localhost(?::\d{{2,5}}(?![\d:])|(?=/))(?:/(?:(?!{UNSPACED})[^\s<>\"'{{}}|\\^、-〿，；：！？（）{TAKEN}])*+)?",
    re.IGNORECASE,
)
_PERCENT: Final = lazy_pattern(r"(?:%[0-9A-Fa-f]{2})+")
_DEFAULT_PORTS: Final = {("http", "80"), ("https", "443"), ("", "80"), ("", "443"), ("ftp", "21"), ("ssh", "22")}
_CLOSERS: Final = {")": "(", "]": "[", "}": "{", ">": "<"}


def web_find(view: TextView) -> None:
    """Add URLs, DOIs and e-mail addresses. Linear in the text."""
    for match in view.matches(_DOI, likely="10." in view.text and "/" in view.text):
        name = trimmed(match[1])
        view.add("doi", name.casefold(), match.start(), match.start(1) + len(name))
    if "://" in view.text or "git@" in view.text:
        _urls(view)
    if "@" in view.text or " at " in view.text or "at]" in view.text.lower() or "at)" in view.text.lower():
        _emails(view)


def names_find(view: TextView) -> None:
    """Add handles and hashtags. Hashtags with digits are codes (``codes_find``)."""
    for match in view.matches(_HANDLE, likely="@" in view.text):
        name = re.sub(r"[.-]+$", "", match[1])
        if not any(sign.isalpha() for sign in name):
            continue
        canonical = name.casefold()
        view.add("handle", canonical, match.start(), match.start(1) + len(name), marks=(f"*name:{canonical}",))
    for match in view.matches(_HASHTAG, likely="#" in view.text):
        name = match[1].rstrip("-_")
        if name and not any(sign.isdigit() for sign in name):
            canonical = name.casefold()
            view.add("hashtag", canonical, match.start(), match.start(1) + len(name), marks=(f"*name:{canonical}",))


def dotted_find(view: TextView) -> None:
    """Add domains and addresses without a scheme, such as ``www.example.com/a``, but not names of files."""
    for match in view.matches(_LOCAL, likely="localhost" in view.words):
        rest = trimmed(match[0])
        kind, canonical = url_canonical("", rest)
        view.add(kind, canonical, match.start(), match.start() + len(rest))
    if not _LABEL_ENDS.search(view.text):
        return
    for match in view.matches(_DOTTED):
        host, port, path = match[1].rstrip("-"), match[2] or "", match[3] or ""
        if len(host) < len(match[1]):
            port = path = ""
        if not domain_like(host):
            continue
        rest = trimmed(host + port + path)
        kind, canonical = url_canonical("", rest)
        view.add(kind, canonical, match.start(1), match.start(1) + len(rest))


def domain_like(host: str) -> bool:
    """Return whether ``host`` ends in a top-level domain, and is neither a file name nor the end of a sentence."""
    labels = host.split(".")
    last = labels[-1]
    if any(not label or label.startswith("-") or len(label) > 63 for label in labels):
        return False
    if (
        last.casefold() not in RESERVED
        and not last.casefold().startswith("xn--")
        and not _is_top_level_domain(last.casefold())
    ):
        return False
    if labels[0].casefold() == "www":
        return True
    # "It ended.So we left": a capital after lower case begins a sentence.
    if last[0].isupper() and not last.isupper() and not labels[0][0].isupper():
        return False
    if len(labels) > 1 and last[0].isupper() and labels[-2][-1].islower():
        return False
    return last.casefold() not in FILE_ENDINGS


@lru_cache(maxsize=2048)
def _is_top_level_domain(label: str) -> bool:
    return bool(_suffixes()(f"a.{label}").suffix)


@lru_cache(maxsize=1)
def _suffixes() -> Any:
    # Imported on first use, because it takes a tenth of a second.
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None)


def host_canonical(host: str) -> str:
    """Return a host name in lower case, without a final dot and ``www.``, and with punycode decoded."""
    labels = [_label(label) for label in host.casefold().rstrip(".").split(".")]
    if len(labels) > 2 and labels[0] == "www":
        labels = labels[1:]
    return ".".join(labels)


def url_canonical(scheme: str, rest: str) -> tuple[str, str]:
    """Return (kind, canonical form) of a URL; ``rest`` is the part after ``scheme://``. The canonical form is without
    http(s), ``www.``, default port, final slash and unnecessary percent encoding. A host alone is a ``domain`` or
    ``ip``."""
    scheme = scheme.casefold()
    cut = next((at for at, sign in enumerate(rest) if sign in "/?#"), len(rest))
    authority, tail = rest[:cut], rest[cut:]
    user, _, host = authority.rpartition("@")
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdigit() or (name.startswith("[") and not name.endswith("]")):
        name, port = host, ""
    if (scheme, port) in _DEFAULT_PORTS:
        port = ""
    path, _, fragment = tail.partition("#")
    path, _, query = path.partition("?")
    path = _PERCENT.sub(_decoded, path).rstrip("/")
    name = host_canonical(name)
    if name == "github.com":
        path = path.removesuffix(".git")
    web = scheme in ("", "http", "https")
    canonical = "".join(
        (
            "" if web else f"{scheme}://",
            f"{user}@" if user else "",
            name,
            f":{port}" if port else "",
            path,
            f"?{query}" if query else "",
            f"#{fragment}" if fragment else "",
        )
    )
    bare = web and canonical == name
    if bare and _address(name):
        return "ip", _address(name)
    return ("domain" if bare and "." in name else "url"), canonical


def trimmed(text: str) -> str:
    """Return ``text`` without the final punctuation of a sentence. A closing bracket is kept if ``text`` opens it."""
    while text:
        last = text[-1]
        if last in ".,;:!?'\"*。，；：！？…" or (last in _CLOSERS and text.count(last) > text.count(_CLOSERS[last])):
            text = text[:-1]
        else:
            break
    return text


def _urls(view: TextView) -> None:
    for match in view.matches(_URL):
        rest = trimmed(match[2][:2_000])
        if not rest or not (rest[0].isalnum() or rest[0] in "/[%_~"):
            continue
        start, end = match.start(), match.start(2) + len(rest)
        scheme = match[1].casefold()
        if scheme == "file":
            continue
        kind, canonical = url_canonical(scheme, rest)
        view.add(kind, canonical, start, end)
        # An IP address as host also identifies the machine.
        host = re.match(r"(?:[^/@]{0,100}@)?(\d{1,3}(?:\.\d{1,3}){3})(?=[:/?#]|$)", rest)
        if host and kind != "ip" and (address := _address(host[1])):
            view.add("ip", address, match.start(2) + host.start(1), match.start(2) + host.end(1))
    for match in view.matches(_GIT):
        path = trimmed(match[2]).rstrip("/")
        canonical = f"{host_canonical(match[1])}/{path.lstrip('/').removesuffix('.git')}"
        view.add("url", canonical, match.start(), match.start(2) + len(path))


def _emails(view: TextView) -> None:
    for match in view.matches(_EMAIL, likely="@" in view.text):
        local = match[1].lstrip("-~.'%+")
        domain = match[2].rstrip("-_")
        if not local.strip(".-_"):
            continue
        labels = domain.split(".")
        # The next sentence begins without a space: "a@x.io.Then".
        while len(labels) > 2 and not re.fullmatch(r"[^\W\d_]{2,24}|xn--[\w-]{1,59}", labels[-1]):
            labels.pop()
        if labels != ["localhost"] and not re.fullmatch(r"[^\W\d_]{2,24}|xn--[\w-]{1,59}", labels[-1]):
            continue
        domain = ".".join(labels)
        view.add("email", email_canonical(local, domain), match.end(1) - len(local), match.start(2) + len(domain))
    small = view.text.lower()
    # Spelled addresses have brackets, or " at " and " dot ".
    spelled = "at" in small and (" dot " in small or any(bracket in small for bracket in "[({"))
    for match in view.matches(_EMAIL_SPELLED, likely=spelled):
        domain = _SPELLED_DOT.sub(".", match[2])
        plain = match[0][len(match[1]) :].lower().startswith(" at ")
        if not domain_like(domain) or (plain and " dot " not in match[2].lower()):
            continue
        view.add("email", email_canonical(match[1].strip(".-"), domain), match.start(), match.end())


def email_canonical(local: str, domain: str) -> str:
    """Return an e-mail address in lower case, without its plus-tag. For Gmail, the dots before the @ are also
    removed."""
    local, domain = local.casefold(), host_canonical(domain) if domain.count(".") > 1 else domain.casefold()
    domain = ".".join(_label(label) for label in domain.split("."))
    local = local.split("+", 1)[0] or local
    if domain in ("gmail.com", "googlemail.com"):
        local, domain = local.replace(".", ""), "gmail.com"
    return f"{local}@{domain}"


def _label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label.encode("ascii").decode("idna")
    except UnicodeError:
        return label


def _address(name: str) -> str:
    if not re.fullmatch(r"\d{1,3}(?:\.\d{1,3}){3}", name):
        return ""
    try:
        return str(ipaddress.IPv4Address(".".join(str(int(part)) for part in name.split("."))))
    except ValueError:
        return ""


def _decoded(match: re.Match[str]) -> str:
    raw = bytes.fromhex(match[0].replace("%", ""))
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return match[0].upper()
    return "".join(
        sign if sign.isalnum() or sign in "-._~" else "".join(f"%{byte:02X}" for byte in sign.encode()) for sign in text
    )
