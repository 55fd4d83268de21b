"""docs/settings.md has a row for every value of a policy, with its default."""

import dataclasses
import re
from pathlib import Path

from django.conf import settings

from memory.core.policy_values import Knobs

PAGE = (Path(settings.BASE_DIR) / "docs" / "settings.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `(MEMSTATE_\w+)`(?: †)? \| ([^|]*?) \|", PAGE, re.MULTILINE))


def test_the_settings_page_has_each_policy_value_with_its_default() -> None:
    for knob in dataclasses.fields(Knobs):
        shown = ROWS[f"MEMSTATE_{knob.name.upper()}"]
        value = knob.default
        if isinstance(value, bool):
            expected = str(value).lower()
        elif isinstance(value, int | float):
            expected = f"{value:.10g}"
        else:
            expected = ",".join(value) if isinstance(value, tuple) else value
        assert shown == (f"`{expected}`" if expected else "none")
