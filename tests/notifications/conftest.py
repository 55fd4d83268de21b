"""A receiver of webhooks, which private addresses are allowed for."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.notifications.receiver import Receiver, receiving


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.MEMSTATE_NOTIFY_PRIVATE_ADDRESSES = True
    with receiving() as started:
        yield started
