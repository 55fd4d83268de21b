"""A scripted language model, and no pause between the phases."""

from typing import Any

import pytest

from tests.llm.fixtures import model

__all__ = ["model"]


@pytest.fixture(autouse=True)
def _no_delay(settings: Any) -> None:
    settings.MEMSTATE_STUDY_PHASE_DELAY_SECONDS = 0.0
