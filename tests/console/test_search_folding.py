"""The list of topics, a phrase in Lookup and a query compare texts in the same way: without case, width and accents."""

from urllib.parse import quote

import pytest
from django.test import Client

from tests.cast import Caller
from tests.console.people import body_of

# A text, and a part of it as someone else would type it.
TEXTS = [
    ("Mara meets Jon at the Café Zentral.", "cafe zentral"),
    ("Mara meets Jon at the Cafe Zentral.", "café zentral"),
    ("Herr Müller wohnt in Köln.", "muller wohnt in koln"),
    ("The part number is ＡＢＣ４７.", "abc47"),
    ("この文書はｶﾀｶﾅで書かれている。", "カタカナで書かれて"),
    ("我们讨论了新的认证方式和权限。", "认证方式"),
    ("우리는 새로운 인증방식을 논의했다.", "인증방식"),
    ("يعيش أحمد في القاهرة.", "احمد في القاهره"[:4]),
    ("Η Άννα μένει στην Αθήνα.", "αννα μενει"),
    ("Алёна живёт в Твери.", "алена живет"),
    ("ประชุมเรื่องการยืนยันตัวตน", "การยืนยัน"),
]


@pytest.mark.parametrize(("text", "asked"), TEXTS, ids=[each[1] for each in TEXTS])
def test_a_part_of_a_text_is_found_however_it_is_spelled(agent: Caller, looker: Client, text: str, asked: str) -> None:
    topic_id = agent.ingest(fields=[{"name": "note", "value": text}])["topic_id"]
    agent.remember("Something else entirely")
    assert agent.found(asked)[0] == topic_id
    listed = agent.get(f"/v1/topics?text={quote(asked)}").ok()["items"]
    assert [each["topic_id"] for each in listed] == [topic_id]
    for wanted in (asked, f'"{asked}"'):
        page = body_of(looker.get("/lookup/", {"q": wanted}))
        assert topic_id in page, wanted
        assert "No exact match." not in page, wanted
