"""What a request says beside its key counts: an opposite is never selected, and unknown words are a question."""

import pytest

from tests.cast import Caller

OPPOSITES = [
    ("Petra is allergic to nuts", "Petra is not allergic to nuts."),
    ("Mara never drinks coffee", "Mara drinks coffee."),
    ("Jonas fährt im Winter Rad", "Jonas fährt im Winter nicht Rad."),
    ("Lucía come carne de cerdo", "Lucía no come carne de cerdo."),
    ("Luc mange du fromage", "Luc ne mange pas de fromage."),
    ("Marco beve caffè la sera", "Marco non beve caffè la sera."),
    ("Ola je mięso w domu", "Ola nie je mięsa w domu."),
    ("Анна ест рыбу по пятницам", "Анна не ест рыбу по пятницам."),
    ("王芳对坚果过敏", "王芳对坚果不过敏"),
    ("ペトラは魚を食べる", "ペトラは魚を食べない"),
    ("민지는 생선을 먹는다", "민지는 생선을 먹지 않는다"),
    ("อันนากินเผ็ด", "อันนาไม่กินเผ็ด"),
    ("राम मांस खाता है", "राम मांस नहीं खाता है"),
    ("أحمد يأكل السمك", "أحمد لا يأكل السمك"),
    ("דנה אוכלת דגים", "דנה לא אוכלת דגים"),
]


def listed(caller: Caller, verb: str, query: str) -> list[str]:
    done = caller.post("/v1/forget", {"verb": verb, "query": query}).ok()
    return [match["topic_id"] for match in done["matches"]]


def test_the_opposite_of_a_statement_is_never_selected(operator: Caller) -> None:
    for asked, stored in OPPOSITES:
        opposite = operator.ingest(fields=[{"name": "fact", "value": stored}])["topic_id"]
        for verb in ("release", "purge"):
            assert listed(operator, verb, asked) == [], asked
            assert listed(operator, verb, stored) == [opposite], stored
        same = operator.ingest(fields=[{"name": "fact", "value": asked}])["topic_id"]
        for verb in ("release", "purge"):
            assert listed(operator, verb, asked) == [same], asked


QUESTIONS = [
    ("the refund of KX-8841", "Order KX-8841 was delivered to the side entrance."),
    ("the complaint about ticket 77-1402", "Ticket 77-1402 was closed by Mara."),
    ("die Rechnung von anna@berg.example", "Anna ist unter anna@berg.example erreichbar."),
    ("возврат заказа KX-9917", "Заказ KX-9917 доставлен к боковому входу."),
    ("KX-5521的退款", "订单KX-5521已送到侧门。"),
    ("KX-3310の返金", "注文KX-3310は通用口に届いた。"),
    ("استرداد KX-6620", "تم تسليم الطلب KX-6620 إلى الباب الجانبي."),
]


@pytest.mark.parametrize(("asked", "stored"), QUESTIONS, ids=[each[0] for each in QUESTIONS])
@pytest.mark.parametrize("verb", ["release", "purge"])
def test_words_that_no_fact_with_the_key_has_are_a_question(
    operator: Caller, verb: str, asked: str, stored: str
) -> None:
    topic_id = operator.ingest(fields=[{"name": "fact", "value": stored}])["topic_id"]
    done = operator.post("/v1/forget", {"verb": verb, "query": asked}).ok()
    assert done["ambiguous"]
    assert done["question"]
    assert [match["topic_id"] for match in done["matches"]] == [topic_id]
    assert done["matches"][0]["confidence"] < 0.5
    assert done["token"] is None
    assert not operator.post("/v1/forget", {"verb": verb, "query": asked, "dry_run": False}).ok()["executed"]
    assert operator.found(stored) == [topic_id]
    chosen = operator.post("/v1/forget", {"verb": verb, "filter": {"ids": [topic_id]}, "dry_run": False}).ok()
    assert chosen["executed"]
    assert operator.found(stored) == []
