"""Defaults of policy values (knobs) from the environment."""

from __future__ import annotations

import dataclasses

from memory.core.errors import MemoryProblem
from memory.core.policy_values import KNOBS, Knobs, KnobValue, knob_parse
from memstate_site.env import SettingError, envbool, envfloat, envint, envstr


def envknobs() -> dict[str, KnobValue]:
    """Return the policy values that are set in the environment, checked against their bounds."""
    turned: dict[str, KnobValue] = {}
    for field in dataclasses.fields(Knobs):
        variable = f"MEMSTATE_{field.name.upper()}"
        if not envstr(variable):
            continue
        knob, default = KNOBS[field.name], field.default
        # bool is a subclass of int, so it is checked first.
        if isinstance(default, bool):
            turned[field.name] = envbool(variable, default)
        elif isinstance(default, int):
            turned[field.name] = envint(variable, default, minimum=int(knob.low), maximum=int(knob.high))
        elif isinstance(default, float):
            turned[field.name] = envfloat(variable, default, minimum=knob.low, maximum=knob.high)
        else:
            try:
                turned[field.name] = knob_parse(field.name, envstr(variable))
            except MemoryProblem as problem:
                raise SettingError(f"{variable}: {problem.sentence}") from None
    return turned
