"""What steers forgetting is not guessed at: a member that does not exist is refused and nothing happens.

A mistyped ``scope`` would else forget in the whole store, and mistyped ``values`` would empty a policy.
"""

from typing import Any

import pytest

from tests.cast import Caller, store_rows

ASKED: list[tuple[str, str, dict[str, Any], str]] = [
    ("post", "/v1/runs", {"scop": "/user", "dry_run": False}, "scop"),
    ("post", "/v1/events", {"scop": "/user"}, "scop"),
    ("put", "/v1/policies/user", {"value": {"mode": "off"}, "reason": "x"}, "value"),
    ("post", "/v1/policies/user/rollback", {"to": 0, "reason": "x", "base": 1}, "base"),
    ("post", "/v1/policies/preview", {"value": {"mode": "off"}}, "value"),
    (
        "post",
        "/v1/policies/backtest",
        {"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z", "value": {}},
        "value",
    ),
]


@pytest.mark.parametrize(("verb", "path", "body", "member"), ASKED, ids=[path for _verb, path, _body, _member in ASKED])
def test_an_unknown_member_is_refused_and_nothing_happens(
    operator: Caller, verb: str, path: str, body: dict[str, Any], member: str
):
    operator.put("/v1/policies/user", {"values": {"half_life_days": 3}, "reason": "x"}).ok()
    before = store_rows()
    answer = getattr(operator, verb)(path, body)
    assert (answer.status, answer.about) == (422, {"unknown-member", member})
    assert store_rows() == before
    assert operator.get("/v1/policies/user").ok()["values"] == {"half_life_days": 3}
