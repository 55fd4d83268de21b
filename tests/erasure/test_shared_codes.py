"""A code or number that another topic names too is not erased, and its other places are no traces."""

import pytest

from memory.erasure.verify import erasure_verify
from memory.models import AccessLog
from tests.cast import Caller

SHARED = [
    ("The refund of RX-40 is due", "RX-40 was delivered"),
    ("doctor invoice 350", "garden invoice 350"),
    ("doctor invoice 350", "garden ticket 350"),
    ("客户的退款KX-5521", "KX-5521 的送货"),
    ("заказ АБ-771 отменён", "заказ АБ-771 оплачен"),
    ("Rechnung 2024/0456 bezahlt", "Rechnung 2024/0456 gemahnt"),
    ("call +49 30 1234567 about the roof", "+49 30 1234567 is the plumber"),
]


@pytest.mark.parametrize(("gone", "kept"), SHARED)
def test_what_both_topics_name_is_left(operator: Caller, gone: str, kept: str) -> None:
    topic_id = operator.remember(gone)
    operator.remember(kept)
    operator.query(kept)
    operator.request("DELETE", f"/v1/topics/{topic_id}").ok()
    assert erasure_verify().traces == []
    assert AccessLog.objects.get().query == kept
