"""Previews for moments far from now, with the shortest half-life there is."""

from tests.cast import Caller
from tests.forgetting.shop import topics_make


def test_a_preview_reaches_from_1970_to_the_last_year_there_is(operator: Caller):
    topics_make(operator, 2, days=200)
    asked = {"values": {"half_life_days": 0.001}, "at": ["1970-01-01T00:00:00Z", "9999-01-01T00:00:00Z"]}
    first, last = operator.post("/v1/policies/preview", asked).ok()["projections"]
    assert first["rungs"] == {"summarize": 0, "detach": 0, "archive": 0}
    assert last["rungs"] == {"summarize": 0, "detach": 0, "archive": 2}
