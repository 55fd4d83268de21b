"""Seeing with the eyes of a key: operators look at what an agent would be told, without having its secret."""

import datetime as dt
import uuid
from dataclasses import dataclass

from django.db.models import Q

from memory.access.principal import Principal
from memory.models import ApiKey


@dataclass(frozen=True, slots=True)
class Acting:
    """A key that could call now: by which name people know it, and whom it stands for."""

    key_id: uuid.UUID
    label: str
    principal: Principal


def keys_acting(now: dt.datetime) -> list[Acting]:
    """Return the keys that are valid at ``now``, by name. One query."""
    valid = ApiKey.objects.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now), revoked_at__isnull=True)
    return [
        Acting(key.pk, f"{key.name} ({key.prefix}…), {key.role} in {key.scope}",
               Principal(identity=f"key:{key.pk}", actor=f"key:{key.name}", role=key.role, scope=key.scope))
        for key in valid.order_by("name", "created_at")
    ]  # fmt: skip
