"""X-MemState-Consistency without a replica; `tests/site/test_replica.py` has one."""

import pytest

from memory.core.problem_codes import ProblemCode
from tests.cast import Cast

HEADER = "X-MemState-Consistency"


@pytest.mark.django_db
@pytest.mark.parametrize("wanted", ["strong", "eventual"])
def test_both_values_are_accepted_and_the_primary_answers(cast: Cast, wanted: str) -> None:
    for answer in (
        cast.reader.get("/v1/topics", headers={HEADER: wanted}),
        cast.agent.post("/v1/query", {"q": "tea"}, headers={HEADER: wanted}),
    ):
        assert answer.status == 200
        assert "x-memstate-replica-lag" not in answer.headers


@pytest.mark.django_db
def test_another_value_is_refused(cast: Cast) -> None:
    answer = cast.reader.get("/v1/topics", headers={HEADER: "soon"})
    assert (answer.status, answer.code) == (422, ProblemCode.INVALID_MEMBER)
