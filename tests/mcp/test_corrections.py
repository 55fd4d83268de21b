"""An agent can correct whatever it can write, and no copy of the old text stays."""

import pytest

from tests.cast import Cast, secret_of
from tests.mcp.conftest import FEW, Connect

# A statement and its correction.
STATEMENTS = [
    ("Device A is a Synology NAS", "Device A is an fnOS NAS."),
    ("Petra isst keinen Fisch", "Petra isst wieder Fisch."),
    ("设备A是一台群晖服务器", "设备A是一台飞牛服务器"),
    ("ペトラは魚を食べない", "ペトラは魚を食べる"),
    ("Анна живёт в городе Осло", "Анна живёт в городе Берген"),
    ("آنا تسكن في مدينة أوسلو", "آنا تسكن في مدينة برغن"),
    ("อันนาอาศัยอยู่ในออสโล", "อันนาอาศัยอยู่ในเบอร์เกน"),
]


@pytest.mark.parametrize("way", FEW[:1], ids="-".join, indirect=True)
def test_a_corrected_statement_is_stored_once(people: Cast, connect: Connect):
    with connect(secret_of("agent")) as link:
        for old, new in STATEMENTS:
            for arguments in ({"title": old}, {"title": old, "summary": f"{old}."}, {"title": "A", "summary": old}):
                topic_id = link.call("new_topic", **arguments)["topic_id"]
                link.call("version_field", topic_id=topic_id, field="note", value=new)
                stored = people.reader.topic(topic_id)
                said = [stored["title"], stored["summary"], *(each["current"]["value"] for each in stored["fields"])]
                assert new in said
                assert not any(old in text for text in said), said
                assert stored["label"] in (new, "A")
                newest = link.call("history", topic_id=topic_id, field="note")["revisions"][0]
                assert newest["value"] == new
                people.operator.request("DELETE", f"/v1/topics/{topic_id}").ok()


@pytest.mark.parametrize("way", FEW[:1], ids="-".join, indirect=True)
def test_supersede_corrects_title_summary_and_field(people: Cast, connect: Connect):
    old, new = "Maria lives in Porto.", "Maria lives in Madrid."
    for item in ({"title": old}, {"title": "Maria", "summary": old}, {"fields": [{"name": "fact", "value": old}]}):
        topic_id = people.agent.ingest(**{"fields": [], **item})["topic_id"]
        with connect(secret_of("agent")) as link:
            done = link.call("supersede", old_query="Maria lives in Porto", new_text=new)
            assert done["topic_id"] == topic_id
            assert [each["topic_id"] for each in done["superseded"]] == [topic_id]
            assert "Porto" not in str(link.call("topic", topic_id=topic_id))
        assert new in str(people.reader.topic(topic_id))
        people.operator.request("DELETE", f"/v1/topics/{topic_id}").ok()


@pytest.mark.parametrize("way", FEW[:1], ids="-".join, indirect=True)
def test_supersede_asks_which_fact_is_meant(people: Cast, connect: Connect):
    ids = {people.agent.remember(f"The wifi password of the {place} is tern-{place}.") for place in ("cabin", "office")}
    with connect(secret_of("agent")) as link:
        text = "The wifi password at work is heron-7."
        asked = link.call("supersede", old_query="the wifi password", new_text=text)
        assert {each["topic_id"] for each in asked["candidates"]} == ids
        meant = next(each for each in asked["candidates"] if "office" in each["text"])
        done = link.call("supersede", old_query="the wifi password", new_text=text, token=meant["token"])
        assert done["topic_id"] == meant["topic_id"]
