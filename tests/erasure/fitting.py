"""Fits the weights of ``memory/finding/weigh.py`` to tables of cases, and shows what each feature and guard brings.

``python -m tests.erasure.fitting TABLE ...`` plays the cases of each table (a folder as ``tests/erasure/cases.py``
describes) in memory, with the packaged model: it prints the weights, how many cases pass when the weights are fitted to
the other four fifths, and with ``--ablation`` how many pass without each part. It stores nothing.
"""

import argparse
import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import django
import numpy as np
import numpy.typing as npt

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memstate_site.settings")
django.setup()
# ruff: noqa: E402

from memory.core.text import TopicText
from memory.embedding import embedder_get
from memory.erasure.remainder import remainder_of
from memory.finding import choose, weigh
from memory.finding.choose import Choice, meant_choose, replaced_choose
from memory.finding.facts import FIELD, Element, Fact, TopicContent, facts_distinct, facts_of, facts_repeated
from memory.text.stems import same_text

# The features with a weight.
FEATURES = tuple(name for name in weigh.REPLACE_WEIGHTS if name != "bias")

FOLDS = 5
# Strength of the pull of every weight towards 0.
RIDGE = 0.5
GUARDS = (
    "contradiction",
    "facts_with_common_names",
    "facts_with_numbers",
    "facts_with_identifiers",
    "facts_with_names",
    "_rivals",
    "_also_replaced",
    "_items_divided",
    "_covering",
    "_records",
    "_answers",
    "_without",
)

Floats = npt.NDArray[np.float64]
_vectors: dict[tuple[str, str], Floats] = {}


def main() -> None:
    """Fit, count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", type=Path)
    parser.add_argument("--ablation", action="store_true")
    asked = parser.parse_args()
    cases = [
        case for table in asked.tables for path in sorted(table.glob("*.json")) for case in json.loads(path.read_text())
    ]
    print(f"{passed(cases)} of {len(cases)} cases pass")
    if asked.ablation:
        for name in FEATURES:
            print(f"without {name}: {passed(cases, without=name)}")
        for name in GUARDS:
            kept = getattr(choose, name)
            setattr(choose, name, _nothing(name))
            print(f"without {name}: {passed(cases)}")
            setattr(choose, name, kept)
    weights_set(cases)
    for title, weights in (("FORGET_WEIGHTS", weigh.FORGET_WEIGHTS), ("REPLACE_WEIGHTS", weigh.REPLACE_WEIGHTS)):
        print(title, {name: round(weight, 2) for name, weight in weights.items()})


def passed(cases: Sequence[dict[str, Any]], *, without: str = "") -> int:
    """Return how many cases pass with weights that were fitted to the others."""
    count = 0
    for fold in range(FOLDS):
        weights_set([case for at, case in enumerate(cases) if at % FOLDS != fold], without=without)
        count += sum(case_passes(case) for at, case in enumerate(cases) if at % FOLDS == fold)
    return count


def weights_set(cases: Iterable[dict[str, Any]], *, without: str = "") -> None:
    """Fit both sets of weights and put them into the module."""
    rows: dict[bool, tuple[list[list[float]], list[int]]] = {True: ([], []), False: ([], [])}
    for case in cases:
        for replaces, features, gone in _examples(case):
            rows[replaces][0].append([0.0 if name == without else features[name] for name in FEATURES])
            rows[replaces][1].append(gone)
    for replaces, weights in ((False, weigh.FORGET_WEIGHTS), (True, weigh.REPLACE_WEIGHTS)):
        bias, *fitted = _logistic(np.array(rows[replaces][0]), np.array(rows[replaces][1], dtype=float))
        weights.clear()
        weights.update({"bias": float(bias), **dict(zip(FEATURES, map(float, fitted), strict=True))})


def case_passes(case: dict[str, Any]) -> bool:
    """Play a case in memory and tell whether exactly what has to go has gone."""
    topics = [_topic(fact) for fact in case["facts"]]
    choice = Choice()
    for step in case["operations"]:
        if "filter" in step:
            return True
        if step["op"] == "ingest":
            topics.append(_topic(step))
            continue
        asked, new = step.get("query") or step["old_query"], step.get("new_text", "")
        facts = facts_distinct(fact for topic in topics for fact in facts_of(topic))
        near = _near(asked, new)
        choice = replaced_choose(asked, new, facts, near) if new else meant_choose(asked, facts, near)
        if not choice.ambiguous:
            topics = list(_after(topics, choice, new))
    if case.get("expect"):
        return choice.ambiguous
    said = [[_plain(element.text) for element in topic.elements()] for topic in topics]
    every = [text for texts in said for text in texts]
    return (
        not choice.ambiguous
        and all(any(_plain(part) in text for text in every) for part in case["must"])
        and not any(_plain(part) in text for part in case["must_not"] for text in every)
        and all(
            sum(any(_plain(part) in text for text in texts) for texts in said) == 1 for part in case.get("once", [])
        )
    )


def _examples(case: dict[str, Any]) -> Iterator[tuple[bool, dict[str, float], int]]:
    """Yield the features of each fact of a case with one step, and whether the fact has to go."""
    if case.get("expect") or len(case["operations"]) != 1:
        return
    step = case["operations"][0]
    asked, new = step.get("query") or step.get("old_query"), step.get("new_text", "")
    if not asked:
        return
    topics = [_topic(fact) for fact in case["facts"]]
    facts = [fact for fact in facts_distinct(f for topic in topics for f in facts_of(topic)) if not fact.item]
    facts = [fact for fact in facts if not (new and same_text(fact.text, new))]
    if new:
        facts = list(choose.replaced_pool(asked, new, facts)[0])
    for one in weigh.candidates_weigh(asked, new, facts, _near(asked, new)(facts)):
        text = _plain(one.fact.text)
        gone = any(_plain(part) in text for part in case["must_not"])
        if gone != any(_plain(part) in text for part in case["must"]):
            yield bool(new), one.features, int(gone)


def _after(topics: Sequence[TopicContent], choice: Choice, new: str) -> Iterator[TopicContent]:
    chosen = {one.fact.topic.id: [] for one in choice.candidates}
    for one in choice.candidates:
        chosen[one.fact.topic.id] += facts_repeated(one.fact)
    left: list[TopicContent] = []
    for topic in topics:
        rest = remainder_of(topic, chosen[topic.id]) if topic.id in chosen else None
        if topic.id not in chosen:
            left.append(topic)
        elif rest is not None:
            left.append(_topic(rest if rest["fields"] else {"text": rest["title"] or rest["summary"]}))
    yield from left
    if new and not any(same_text(element.text, new) for topic in left for element in topic.elements()):
        yield _topic({"text": new})


def _near(asked: str, new: str) -> Callable[[Sequence[Fact]], list[tuple[float, float]]]:
    def near(facts: Sequence[Fact]) -> list[tuple[float, float]]:
        found = []
        for fact in facts:
            vector = _vector(_text(fact.topic))
            cosines = (vector @ _vector(asked, "query"), vector @ _vector(new) if new else 0.0)
            unrelated = embedder_get().unrelated
            found.append(tuple((float(cosine) - unrelated) / (1 - unrelated) for cosine in cosines))
        return found

    return near


def _vector(text: str, kind: str = "passage") -> Floats:
    if (kind, text) not in _vectors:
        embedder = embedder_get()
        found = embedder.embed_query(text) if kind == "query" else embedder.embed_passages([text])[0]
        _vectors[kind, text] = np.asarray(found, dtype=float)
    return _vectors[kind, text]


def _topic(fact: dict[str, Any]) -> TopicContent:
    fields = fact.get("fields") or {"fact": fact["text"]}
    title = fact.get("title") or fact.get("text", "")
    topic = TopicContent(uuid.uuid4(), title[:200], fact.get("summary", ""), "", "/", [], False, True)
    topic.fields = [Element(FIELD, value, name, uuid.uuid4()) for name, value in fields.items()]
    return topic


def _text(topic: TopicContent) -> str:
    return TopicText(topic.title, topic.summary, [element.text for element in topic.fields]).embedded()


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _logistic(rows: Floats, goes: Floats) -> Floats:
    """Return bias and weights of the logistic model that fits best, by Newton's method."""
    design = np.hstack([np.ones((len(rows), 1)), rows])
    pull = np.diag([0.0] + [RIDGE] * rows.shape[1])
    weights = np.zeros(design.shape[1])
    for _step in range(30):
        likely = 1 / (1 + np.exp(-design @ weights))
        slope = design.T @ (goes - likely) - pull @ weights
        curve = (design * (likely * (1 - likely))[:, None]).T @ design + pull + 1e-9 * np.eye(len(weights))
        weights += np.linalg.solve(curve, slope)
    return weights


def _nothing(name: str) -> Callable[..., Any]:
    """Return what stands for a part of ``choose`` that is left out."""
    kept = {
        "contradiction": lambda *_: "",
        "facts_with_common_names": lambda _asked, _new, facts: tuple(facts),
        "facts_with_numbers": lambda _asked, facts: tuple(facts),
        "facts_with_identifiers": lambda *_: None,
        "facts_with_names": lambda *_: None,
        "_rivals": lambda *_: False,
        "_also_replaced": lambda *_: False,
        "_items_divided": lambda chosen, *_: chosen,
        "_covering": lambda *_: (),
        "_records": lambda chosen, _facts: tuple(chosen),
        "_answers": lambda *_: [],
        "_without": lambda _request, facts: list(facts),
    }
    return kept[name]


if __name__ == "__main__":
    main()
