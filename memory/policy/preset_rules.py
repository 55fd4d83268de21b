"""The rules that a preset brings, at the scope where it is set."""

import dataclasses
from functools import lru_cache

from memory.core.presets import PRESETS
from memory.core.rules import Rule
from memory.policy.rule_presets import RULE_PRESETS


@lru_cache(maxsize=1000)
def preset_rules(preset: str, *, scope: str) -> tuple[Rule, ...]:
    """Return the rules of ``preset`` as rules of ``scope``; none without a preset."""
    if not preset:
        return ()
    return tuple(
        dataclasses.replace(rule, scope=scope) for name in PRESETS[preset].rules for rule in RULE_PRESETS[name]
    )
