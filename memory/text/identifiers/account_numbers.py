"""Long numbers with a known form: bank accounts, cards, books, social security numbers, telephones."""

import re
from typing import Final

from stdnum import isbn, luhn

from memory.text.identifiers.tables import IBAN_LENGTHS
from memory.text.identifiers.view import TAKEN, WORD, TextView
from memory.text.lazy_pattern import lazy_pattern

_FRESH: Final = rf"(?<!{WORD})(?<!\w[-./])(?<![#{TAKEN}])"
_IBAN: Final = lazy_pattern(rf"(?<!{WORD})([A-Za-z]{{2}}\d{{2}})(?=[ -]?[A-Za-z0-9]{{2}})")
_ISBN: Final = lazy_pattern(
    rf"(?<!{WORD})(?:(ISBN(?:-1[03])?)[:\s]{{0,3}})?"
    rf"(?<![\d-])((?:97[89][ -]?)?\d(?:[ -]?\d){{8}}[ -]?[\dXx])(?!{WORD})(?!-\d)",
    re.IGNORECASE,
)
_SSN: Final = lazy_pattern(rf"{_FRESH}(\d{{3}})([- ])(\d{{2}})\2(\d{{4}})(?!\w)(?!-\d)(?! \d{{2}}(?!\d))")
_NINO: Final = lazy_pattern(rf"(?<!{WORD})([A-Za-z]{{2}})\s?(\d{{2}})\s?(\d{{2}})\s?(\d{{2}})\s?([A-Da-d])(?!{WORD})")
# A run of digits with at most two separators between neighbouring digits.
_CHUNK: Final = lazy_pattern(
    rf"(?<!{WORD})(?<!\w[-./:])(?<![\d$€£¥#{TAKEN}])(tel:|callto:|sms:|wa\.me/)?(\+\s?|\(\+|\()?"
    rf"(\d(?:(?:[ ./-]|\)[ -]?| ?\()?+\d)*+)(?!{WORD})(?!-[A-Za-z])(?:\s?(?:ext\.?|x|extension)\s?(\d{{1,6}})(?!\w))?",
    re.IGNORECASE,
)
# Telephone numbers of North America. They are searched before ``_CHUNK``, which would join several neighbouring numbers
# into one.
_AMERICAN: Final = lazy_pattern(
    rf"(?<!{WORD})(?<![+({TAKEN}#$€£])(?<!\w[-./:])((?:1[ .-])?(?:\([2-9]\d{{2}}\) ?|[2-9]\d{{2}}([ .-]))"
    rf"[2-9]\d{{2}}[ .-]\d{{4}})(?![-.]?\w)"
    r"(?! (?:x|ext))"
)
_PHONE_WORD: Final = lazy_pattern(
    r"(?<![A-Za-zÀ-ÿ])(?:phone|telephone|tel|mobile|mob|cell|cellphone|call|fax|whatsapp|signal|text|sms|ring|reach|contact|dial|hotline|landline|handy|telefon|telefonnummer|rufnummer|téléphone|teléfono|móvil|cellulare|"
    r"телефон|тел|номер|电话|電話|手机|手機|携帯|전화|फ़ोन|فون|هاتف)(?:\s?(?:no|nr|number|nummer))?[\s.:=#)]{0,3}(?:(?:is|at|on|was|number|me|her|him|them|ist|lautet|now|под|是)[\s:]{0,2}){0,2}[(+]{0,2}$",
    re.IGNORECASE,
)
_GROUPS: Final = lazy_pattern(r"\d+")
# A number of the North American Numbering Plan.
_NANP: Final = lazy_pattern(r"[2-9]\d{2}[2-9]\d{6}")


def accounts_find(view: TextView) -> None:
    """Add IBANs, cards, ISBNs and social security numbers. Linear in the text."""
    for match in view.matches(_IBAN, likely=view.digits > 9):
        _iban(view, match)
    for match in view.matches(_ISBN, likely=view.digits > 8):
        bare = re.sub("[ -]", "", match[2]).upper()
        real = isbn.is_valid(bare)
        if (match[1] and len(bare) in (10, 13)) or (
            real and (len(bare) == 13 or re.fullmatch(r"\d+(?:-\d+){2}-[\dXx]", match[2]))
        ):
            view.add("isbn", isbn.to_isbn13(bare), match.start() if match[1] else match.start(2), match.end(2))
    for match in view.matches(_CHUNK, likely=view.digits > 12):
        if not match[1] and "+" not in (match[2] or ""):
            _card(view, match)
    for match in view.matches(_SSN, likely=view.digits > 8):
        view.add("ssn", match[1] + match[3] + match[4], match.start(), match.end())
    for match in view.matches(_NINO, likely=view.digits > 5):
        if match[0].isupper() or " " in match[0]:
            view.add("ssn", "".join(match.groups()).lower(), match.start(), match.end())


def phones_find(view: TextView) -> None:
    """Add telephone numbers. The canonical form begins with the country code if the country is known: from a prefix
    such as +49 or 0049, or from the ten digits of a North American number. Otherwise it has the digits without leading
    zeros."""
    if view.digits < 7:
        return
    for match in view.matches(_AMERICAN):
        if re.search(r"\+[\d .()-]{1,6}$", view.text[max(0, match.start() - 7) : match.start()]):
            continue
        american = re.sub(r"\D", "", match[1])[-10:]
        view.add("phone", f"+1{american}", match.start(1), match.end(1), marks=(f"*phone:{american}",))
    for match in view.matches(_CHUNK):
        raw = match[0]
        digits = re.sub(r"\D", "", match[3])
        if 6 < len(digits) < 18:
            _phone(view, match, raw, digits)


def _phone(view: TextView, match: re.Match[str], raw: str, digits: str) -> None:
    bracket = match[2] == "(" and ")" not in match[3]
    raw = raw.lstrip("(") if bracket else raw
    start = match.start(2) if match[2] and not bracket else match.start(3)
    begin, end = (match.start() if match[1] else start), match.end()
    tail = f"x{int(match[4])}" if match[4] else ""
    if "+" in (match[2] or "") or (digits.startswith("00") and len(digits) > 9):
        bare = re.sub(r"\D", "", re.sub(r"\(0\)", "", match[3]))
        bare = bare if "+" in (match[2] or "") else bare[2:]
        country, national = _parted(bare)
        view.add("phone", f"+{country}{national}{tail}", begin, end, marks=(f"*phone:{national}{tail}",))
        return
    groups = _GROUPS.findall(match[3])
    spoken = bool(match[1]) or bool(_PHONE_WORD.search(view.text[max(0, match.start() - 60) : match.start()]))
    joined = len(groups) == 1
    american = digits[1:] if len(digits) == 11 and digits[0] == "1" else digits
    if _NANP.fullmatch(american) and not match[3].count("/"):
        shape = [len(group) for group in groups if group != "1" or len(digits) == 10]
        if joined or shape in ([3, 3, 4], [3, 7], [10]):
            view.add("phone", f"+1{american}{tail}", begin, end, marks=(f"*phone:{american}{tail}",))
            return
    likely = spoken or (
        # "0170 1234567", "06 12 34 56 78", "98765 43210"; not "1 234 567", and not "12 345 678".
        (digits[0] == "0" and len(digits) > 8)
        or (
            [len(group) for group in groups] in ([5, 5], [2, 4, 4], [2, 5, 4], [3, 4], [3, 4, 4])
            and " ." not in raw
            and "." not in match[3]
        )
        or (raw.startswith("(") and len(groups) > 1)
    )
    if likely and not re.fullmatch(r"\d{4}-\d{4}|\d{1,3}(?:\.\d{3})+", match[3]):
        national = digits.lstrip("0")
        short = len(national) < 8
        marks = () if short else (f"~phone:{national}{tail}",)
        view.add("phone", f"{national}{tail}", begin, end, marks=marks)


def _parted(digits: str) -> tuple[str, str]:
    """Return (country code, national number). A zero that is written but not dialled, as in +49 (0)30, is left out."""
    # The package loads its tables on demand, one country at a time.
    import phonenumbers

    try:
        parsed = phonenumbers.parse(f"+{digits}", None)
    except phonenumbers.NumberParseException:
        return digits[:2], digits[2:].lstrip("0")
    return str(parsed.country_code), ("0" if parsed.italian_leading_zero else "") + str(parsed.national_number)


def _iban(view: TextView, match: re.Match[str]) -> None:
    length = IBAN_LENGTHS.get(match[1][:2].casefold())
    if length is None:
        return
    text, at = view.text, match.start()
    characters: list[str] = []
    while at < len(text) and len(characters) < length:
        char = text[at]
        if char.isascii() and char.isalnum():
            characters.append(char)
        elif char not in " -" or text[at - 1] in " -":
            return
        at += 1
    number = "".join(characters).lower()
    if len(characters) < length or sum(char.isdigit() for char in number) < 8:
        return
    if at < len(text) and ((text[at].isascii() and text[at].isalnum()) or text[at] == "_"):
        return
    view.add("iban", number, match.start(), at)


def _card(view: TextView, match: re.Match[str]) -> None:
    digits = re.sub(r"\D", "", match[3])
    if not 13 <= len(digits) <= 19 or digits[0] not in "23456" or re.search(r"[./()]", match[3]):
        return
    grouped = [len(group) for group in _GROUPS.findall(match[3])] in (
        [4, 4, 4, 4],
        [4, 6, 5],
        [4, 6, 4],
        [4, 4, 4, 4, 3],
    )
    usual = (len(digits) == 16 or (len(digits) == 15 and digits[:2] in ("34", "37"))) and digits == match[3]
    if grouped or usual or luhn.is_valid(digits):
        view.add("card", digits, match.start(3), match.end(3))
