"""What pages bring along: plotly.js weighs far more than everything else, so only pages with a chart load it."""

import re

import pytest

from tests.cast import Caller
from tests.console.crowd import crowd_make
from tests.console.people import account_make, body_of, client_of
from tests.console.table import pages

# By the names of their addresses.
WITH_A_CHART = {"salience", "salience_backtest", "topic", "topic_salience"}


@pytest.mark.django_db
def test_only_pages_with_a_chart_load_plotly(operator: Caller) -> None:
    crowd = crowd_make(operator, 3)
    client = client_of(account_make("administrator"), raise_request_exception=False)
    with_script, with_chart = set(), set()
    for address in pages():
        html = body_of(client.get(address.url(**crowd.given(address.arguments))))
        if "<html" not in html:
            continue
        scripts = re.findall(r"<script[^>]*plotly[^>]*>", html)
        if scripts:
            with_script.add(address.name)
            assert all(" defer" in script for script in scripts)
        if "data-chart=" in html:
            with_chart.add(address.name)
    assert with_script == WITH_A_CHART
    assert with_chart <= WITH_A_CHART
