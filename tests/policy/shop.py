"""Short words for what the tests of this folder do."""

import datetime as dt
from typing import Any

from memory.models import PolicyVersion
from memory.policy.save import policy_save

NOW = dt.datetime(2026, 3, 1, 12, 0, tzinfo=dt.UTC)


def saved(scope: str = "/", /, **values: Any) -> PolicyVersion:
    """Set exactly these values at ``scope``; the other members of a save may be named among them."""
    got = {name: values.pop(name) for name in ("preset", "rules", "base_version") if name in values}
    said = {"author": "test", "reason": "because", "now": NOW, "preset": None}
    said |= {name: values.pop(name) for name in ("author", "reason", "now") if name in values}
    return policy_save(scope, values=values, **{**said, **got})
