"""Defaults of policy values (knobs) from the environment."""

from __future__ import annotations

from memory.core.errors import MemoryProblem
from memory.core.policy_values import KNOBS, KnobValue, knob_parse
from memstate_site.env import SettingError, envstr


def envknobs() -> dict[str, KnobValue]:
    """Return the policy values that are set in the environment, checked against their bounds."""
    values: dict[str, KnobValue] = {}
    for name in KNOBS:
        variable = f"MEMSTATE_{name.upper()}"
        if not envstr(variable):
            continue
        try:
            values[name] = knob_parse(name, envstr(variable))
        except MemoryProblem as problem:
            raise SettingError(f"{variable}: {problem.sentence}") from None
    return values
