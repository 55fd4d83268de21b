"""What the automatic mode does to planted near-duplicates and look-alikes; the large one is among the benchmarks."""

import pytest

from tests.cast import Caller
from tests.duplicates.planted import SCOPE, outcome, plant, search_all
from tests.forgetting.shop import policy_put


@pytest.mark.meaning
def test_near_duplicates_are_merged_and_no_look_alike_is(operator: Caller):
    policy_put(operator, SCOPE, duplicates_mode="auto")
    planted = plant(operator, facts=300, near=60, alike=60)
    search_all()
    got = outcome(planted)
    assert got.wrongly_merged == []
    assert got.offered >= 57
    # Only those that are equal after folding.
    assert got.merged >= 12
