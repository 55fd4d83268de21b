"""Whether a sentence denies what it speaks of."""

import pytest

from memory.text.negation import negated


def test_it_is_denied() -> None:
    cases = [
        "Anna does not eat fish.",
        "Anna doesn't eat fish.",
        "Anna doesn’t eat fish.",
        "Anna can't swim.",
        "Anna never eats fish.",
        "Anna no longer lives here.",
        "Anna stopped smoking.",
        "Anna is free of debt.",
        "Nobody came.",
        "Neither Anna nor Ben came.",
        "Anna isst kein Fleisch.",
        "Anna no come carne, nunca lo comía sin sal.",
        "Анна не ест рыбу.",
        "安娜不吃鱼。",
        "肉を食べない。",
        "안나는 고기를 안 먹는다.",
    ]
    assert [case for case in cases if not negated(case)] == []


def test_it_is_stated() -> None:
    cases = [
        "Anna eats fish.",
        "Anna eats not only fish.",
        "See No. 5.",
        "No problem.",
        "No doubt Anna eats fish.",
        "Why not go?",
        "Anna is not without friends.",
        "I know the knot.",
        "The price is 5 plus tax.",
        "Анна ест рыбу.",
        "安娜吃鱼。",
        "",
    ]
    assert [case for case in cases if negated(case)] == []


@pytest.mark.parametrize("text", ["Anna eats fish", "The server is in Oslo", "Tea is hot"])
def test_what_is_denied_twice_is_stated(text: str) -> None:
    denied = f"It is not so that {text}"
    assert negated(denied)
    assert not negated(f"Nobody says: {denied}")
