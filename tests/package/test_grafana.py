"""The dashboard for Grafana against the metrics that MemState serves."""

import json
import re
from typing import Any

import pytest

from memstate_site.folder import CHECKOUT
from tests.cast import Caller

DASHBOARD: dict[str, Any] = json.loads((CHECKOUT / "docs" / "grafana.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
# These appear with the first call of a language model, which the tests have not.
LATER = {"memstate_model_calls_total"}
NO_LABELS = {"le", "quantile"}


@pytest.mark.usefixtures("transactional_db")
def test_every_metric_and_label_of_the_dashboard_is_served(agent: Caller, anonymous: Caller):
    agent.remember("Tea")
    agent.query("tea")
    text = anonymous.get("/metrics").text
    served: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(memstate_\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        served.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    used = {name for each in EXPRESSIONS for name in re.findall(r"memstate_\w+", each)}
    assert used - served.keys() <= LATER
    assert {"memstate_topics", "memstate_archivings", "memstate_runs_held", "memstate_queue_age_seconds"} <= used
    for each in EXPRESSIONS:
        for name, selector in re.findall(r"(memstate_\w+)\{([^}]*)\}", each):
            wanted = set(re.findall(r"(\w+)=", selector))
            wanted |= {label for group in re.findall(r"by \(([^)]*)\)", each) for label in re.split(r",\s*", group)}
            assert name in LATER or wanted - NO_LABELS <= served[name], each
    assert 'what="regretted"' in text
    assert re.search(r'memstate_requests_total\{.*route="[^"]*v1/query"', text)
