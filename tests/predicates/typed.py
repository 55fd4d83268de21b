"""A predicate as people would type it into the search box; read again, it gives the same predicate."""

import datetime as dt

from memory.core.durations import SECONDS
from memory.predicates.tree import AllOf, AnyOf, Comparison, Not, Phrase, Predicate, Word


def typed(predicate: Predicate | None) -> str:
    match predicate:
        case None:
            return ""
        case AllOf(parts):
            return " ".join(f"({typed(part)})" if isinstance(part, AnyOf) else typed(part) for part in parts)
        case AnyOf(parts):
            return " OR ".join(typed(part) for part in parts)
        case Not(part):
            return f"-({typed(part)})" if isinstance(part, (AllOf, AnyOf)) else f"-{typed(part)}"
        case Word(text):
            return text
        case Phrase(text):
            return f'"{text}"'
        case Comparison():
            return _typed(predicate)


def _typed(comparison: Comparison) -> str:
    sign = "" if comparison.op == "is" else comparison.op
    match comparison.field, comparison.value:
        case "id", str(digits):
            return f"id:{_dashed(digits)}"
        case "scope" | "kind" | "category" | "provenance" | "title" | "summary" as field, str(text):
            return f"{field}:{_quoted(text)}"
        case "field", (name, *value):
            return f"field:{_quoted(name)}" + (f"={_quoted(value[0])}" if value else "")
        case "pinned", value:
            return f"pinned:{'yes' if value else 'no'}"
        case "live" | "released" as field, _:
            return f"is:{field}"
        case "used", None:
            return "used:never"
        case "age" | "idle" as field, float(seconds):
            return f"{field}:{sign}{_length(seconds)}"
        case field, float(number):
            # As many digits as can be typed, and never an exponent.
            return f"{field}:{sign}" + f"{number:.12f}".rstrip("0").rstrip(".")
        case field, value:
            return f"{field}:{sign}{value.isoformat() if isinstance(value, dt.date) else value}"


def _quoted(text: str) -> str:
    plain = text and not any(letter.isspace() or letter in "()=" for letter in text)
    return text if plain else f'"{text}"'


def _dashed(digits: str) -> str:
    groups = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return "-".join(group for group in groups if group)


def _length(seconds: float) -> str:
    whole = int(seconds)
    unit = next(unit for unit in ("d", "h", "min", "s") if whole % SECONDS[unit] == 0)
    return f"{whole // SECONDS[unit]}{unit}"
