"""The environment's say in the numbers that operators may turn."""

from __future__ import annotations

from memory.domain.errors import ValueRefused
from memory.domain.knobs import KNOBS, knob_parse
from memstate_site.env import SettingError, envstr


def knob_overrides() -> dict[str, float]:
    """Other defaults for knobs: each from the variable ``MEMSTATE_`` and the knob's name in capitals."""
    overrides: dict[str, float] = {}
    for name in KNOBS:
        variable = f"MEMSTATE_{name.upper()}"
        if text := envstr(variable):
            try:
                overrides[name] = knob_parse(name, text)
            except ValueRefused as refusal:
                raise SettingError(f"{variable}: {refusal.sentence}") from refusal
    return overrides
