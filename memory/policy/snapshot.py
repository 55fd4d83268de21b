"""What is in force, everywhere, at one moment: a set of policies that can be asked for any scope."""

from dataclasses import dataclass
from typing import Any

from memory.domain.knobs import Knobs
from memory.domain.rules import RuleSet


@dataclass(frozen=True, slots=True)
class Source:
    """Where an effective value comes from: a scope path, ``default`` or ``environment``; and the preset, if one."""

    source: str
    preset: str = ""


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """What is in force for one scope and everything below it that has no policy of its own."""

    scope: str
    knobs: Knobs
    sources: dict[str, Source]
    rules: RuleSet
    # Of the nearest policy at or above the scope: its path and version; 0 when nobody has set one.
    at: str = "/"
    version: int = 0


@dataclass(frozen=True, slots=True)
class Policies:
    """A snapshot. ``stamp`` tells whether it is still the present one; ``rekeying`` names scopes whose rows are being
    given another half-life."""

    stamp: tuple[Any, ...] = ()
    rekeying: tuple[str, ...] = ()
