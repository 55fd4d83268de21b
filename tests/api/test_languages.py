"""Recall in languages other than English: relevance, search by parts of words, and documents of an older release."""

from typing import Any

import pytest
from django.db import connection

from memory.core.policy_values import Knobs
from memory.models import TopicDocument
from tests.cast import Caller, worker_turn
from tests.languages import FACTS

pytestmark = pytest.mark.django_db


@pytest.mark.meaning
@pytest.mark.parametrize("language", FACTS)
def test_the_answer_is_first_and_alone_reaches_the_floor(agent: Caller, language: str) -> None:
    for fact, _question in FACTS[language]:
        agent.remember("", summary=fact)
    floor = Knobs().reinforce_min_relevance
    for fact, question in FACTS[language][:-1]:
        found = agent.query(question)["candidates"]
        assert found[0]["summary"] == fact
        assert [each["summary"] for each in found if each["relevance"] >= floor] == [fact]


# A text, two letters of its middle, and two letters that are not in it.
TEXTS = {
    "Chinese": ("王小明下周三去杭州出差", "杭州", "苏州"),
    "Japanese": ("来月は京都へ引っ越す予定です", "京都", "奈良"),
    "Korean": ("동생은부산에서근무한다", "부산", "서울"),
    "Thai": ("น้องสาวของฉันอาศัยอยู่ที่เชียงใหม่", "ใหม่", "พัทยา"),
    "Lao": ("ນ້ອງສາວຂ້ອຍຢູ່ຫຼວງພະບາງ", "ພະບາງ", "ປາກເຊ"),
    "Khmer": ("ប្អូនស្រីខ្ញុំរស់នៅសៀមរាប", "សៀម", "កំពត"),
    "Burmese": ("ညီမလေးကမန္တလေးမှာနေတယ်", "မန္တလေး", "ပဲခူး"),
}


@pytest.mark.parametrize("language", TEXTS)
def test_two_letters_of_the_middle_find_a_text_without_spaces(agent: Caller, operator: Caller, language: str) -> None:
    text, inside, outside = TEXTS[language]
    topic_id = agent.remember("Note", summary=text)
    agent.remember("Other", summary="Nothing of the kind")

    def listed(words: str) -> list[str]:
        page = operator.get(f"/v1/topics?text={words}").ok()
        return [each["topic_id"] for each in page["items"]]

    assert listed(inside) == [topic_id]
    assert listed(f'"{inside}"') == [topic_id]
    assert listed(outside) == []
    assert topic_id not in listed(f"-{inside}")
    assert len(listed(f"-{outside}")) == 2


@pytest.mark.parametrize("stored", ["Café Zürich", "CAFE\u0301 ZU\u0308RICH", "Ｃａｆｅ Ｚｕｒｉｃｈ"])
def test_accents_case_and_width_do_not_matter(agent: Caller, operator: Caller, stored: str) -> None:
    topic_id = agent.remember("Note", summary=stored)
    for asked in ("cafe zurich", "Café", "zürich", "ＺＵＲＩＣＨ"):
        assert [each["topic_id"] for each in operator.get(f"/v1/topics?text={asked}").ok()["items"]] == [topic_id]


def test_documents_of_an_older_release_are_made_again_in_the_background(agent: Caller, operator: Caller) -> None:
    text, inside, _outside = TEXTS["Chinese"]
    ids = {agent.remember(f"Note {number}", summary=text, values={"note": text}) for number in range(3)}
    english = agent.remember("Plain", summary="A plain English text")
    worker_turn()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE memory_topicdocument SET document = to_tsvector('english', %s), outdated = true "
            "WHERE topic_id = ANY(%s::uuid[])",
            [text, list(ids)],
        )

    def found() -> set[str]:
        return {each["topic_id"] for each in operator.get(f"/v1/topics?text={inside}").ok()["items"]}

    assert found() == set()
    stats: dict[str, Any] = operator.get("/v1/stats").ok()
    assert stats["backlog"]["outdated_documents"] == 3
    assert worker_turn()["remade"] == 3
    assert found() == ids
    assert operator.get("/v1/stats").ok()["backlog"]["outdated_documents"] == 0
    assert not TopicDocument.objects.get(pk=english).outdated
