"""An answer says each fact once: topics that repeat a better one go behind, and count as used with it."""

import pytest

from memory.models import AccessLog, Vitality
from tests.cast import Caller, worker_turn

pytestmark = [pytest.mark.django_db, pytest.mark.meaning]

PORTO = [
    "Ana lives in Porto.",
    "Ana's home is in Porto.",
    "Ana resides in Porto.",
    "Porto is where Ana lives.",
    "Ana has her home in Porto.",
    "Ana is living in Porto these days.",
    "Ana moved to Porto and lives there.",
    "The city Ana lives in is Porto.",
    "Ana, who lives in Porto, likes it there.",
]
OTHERS = ["Ana works as a nurse at the hospital.", "Ana has a dog called Bica.", "Ana is allergic to peanuts."]


@pytest.mark.parametrize(
    "question", ["What do you know about Ana?", "Where does Ana live?", "Tell me about Ana in Porto"]
)
def test_five_topics_have_four_different_facts(agent: Caller, question: str) -> None:
    for text in [*PORTO, *OTHERS]:
        agent.remember("", summary=text)
    found = agent.query(question, top_k=5)["candidates"]
    assert set(OTHERS) < {each["summary"] for each in found}


def test_repeating_topics_come_last_and_are_used_too(agent: Caller) -> None:
    one, two = (agent.remember("", summary=text) for text in PORTO[:2])
    other = agent.remember("", summary="Porto has a port.")
    whole = agent.query("Where in Porto does Ana live?")["candidates"]
    assert [each["topic_id"] for each in whole[1:]][-1] in (one, two)
    assert {whole[0]["topic_id"], *whole[0]["also"]} == {one, two}
    assert other in [each["topic_id"] for each in whole]

    short = agent.query("Where in Porto is the home of Ana?", top_k=1)["candidates"]
    assert len(short) == 1
    assert {str(topic_id) for topic_id in AccessLog.objects.latest("id").topic_ids} == {one, two}
    worker_turn()
    assert set(Vitality.objects.filter(topic_id__in=[one, two]).values_list("retrieval_count", flat=True)) == {2}


@pytest.mark.parametrize(
    "other",
    [
        "Ana does not live in Porto.",
        "Ana lives in Lisbon.",
        "Bea lives in Porto.",
        "Ana lives in Porto since 2019.",
        "Ana lived in Porto until 2020.",
    ],
)
def test_numbers_names_and_negations_make_another_fact(agent: Caller, other: str) -> None:
    agent.remember("", summary=PORTO[0])
    agent.remember("", summary=other)
    assert not any("also" in each for each in agent.query("Where does Ana live?")["candidates"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana likes tea in the morning.", "Ana likes coffee in the morning."),
        ("I prefer window seats.", "I prefer aisle seats."),
        ("The backup runs before lunch.", "The backup runs after lunch."),
        ("Anna mag Hunde.", "Anna mag Katzen."),
        ("安娜喜欢喝茶", "安娜喜欢喝咖啡"),
        ("アナは猫を飼っている", "アナは犬を飼っている"),
        ("Она любит читать романы.", "Она любит читать стихи."),
    ],
)
def test_a_replaced_word_makes_another_fact(agent: Caller, one: str, other: str) -> None:
    agent.remember("", summary=one)
    agent.remember("", summary=other)
    assert not any("also" in each for each in agent.query(one)["candidates"])


def test_a_field_that_only_the_second_has_is_not_hidden(agent: Caller) -> None:
    agent.remember("", summary=PORTO[0])
    agent.remember("", summary=PORTO[0], values={"street": "Rua das Flores"})
    agent.query("Ana lives in Porto")
    found = agent.query("Ana lives in Porto")["candidates"]
    assert not any("also" in each and not each["fields"] for each in found)
