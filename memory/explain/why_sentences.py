"""Says in sentences why a topic has its stage: first the answer, then further facts. No query.

A sentence is a sequence of texts and marks. The API joins their texts, and the console shows marks as links.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from math import floor
from typing import Any, Literal, NamedTuple

from memory.explain.replies import RegretTopic, WhyEvent, WhyReply, WhyRescue, WhyReturned, WhyStep, WhyUses
from memory.forgetting.run_text import event_words

_VERBS = {"restored": "Moved up", "folded": "Summarized again"}


class Mark(NamedTuple):
    """A part of a sentence that leads to something. ``kind`` says what ``about`` has: a time; the id of a topic or run;
    the name of a caller; policy and version; or name and value of a threshold, with the policy and version that set it.
    """

    text: str
    kind: Literal["time", "topic", "run", "caller", "version", "limit", "uses"]
    about: tuple[Any, ...] = ()


Sentence = tuple[str | Mark, ...]


def why_sentences(card: WhyReply, *, mode: str) -> list[str]:
    """Return the sentences of a why-card as plain texts, with the score after the answer. ``mode`` is the mode of the
    policy."""
    first, *others = (plain(each) for each in card_sentences(card, mode=mode))
    standing = card["standing"]
    if standing["merged_into"] or standing["released_at"]:
        return [first, *others]
    policy = f"version {standing['version']} of {standing['policy']}" if standing["version"] else "the defaults"
    score = f"It is {standing['rung']}; its score is {score_text(standing['score'])}"
    return [first, f"{score} ({standing['strategy']}, by {policy}).", *others]


def plain(sentence: Sentence) -> str:
    """Return a sentence as text."""
    return "".join(part if isinstance(part, str) else part.text for part in sentence)


def card_sentences(card: WhyReply, *, mode: str) -> Iterator[Sentence]:
    """Yield the sentences of a why-card, the answer first."""
    standing = card["standing"]
    last = next((entry for entry in card["history"] if entry_moved(entry)), None)
    answers = last is not None and (bool(standing["released_at"]) or standing["rung"] != "active")
    if standing["merged_into"]:
        yield "Merged into ", Mark(standing["merged_into"], "topic", (standing["merged_into"],)), "."
    elif last is not None and answers:
        yield _event(last)
    else:
        yield _present(card)
    if last is not None and not answers and not standing["merged_into"]:
        yield _event(last)
    if last is not None and last["by"] == "run" and last.get("version"):
        reason = last.get("policy_reason")
        policy = _version(last["policy"] or "", last["version"] or 0)
        yield "It followed ", policy, f": {reason.rstrip('.')}." if reason else "."
    yield _uses(card["reinforced"])
    if card["returned"]["total"]:
        yield (_returned(card["returned"]),)
    yield from _next(card, mode)
    if card["rescue"] is not None:
        yield _rescue(card["rescue"])
    for entry in card["regret"][:1]:
        yield _regret(entry)


def score_text(score: float) -> str:
    """Return a score as the console writes it."""
    return f"{score:.3g}" if not 0 < score < 0.0001 else "less than 0.0001"


def entry_moved(entry: WhyEvent) -> bool:
    """Return whether an event of a history changed the state of the topic."""
    return entry["what"] not in ("created", "salience set", "undone") and entry["state"] in ("applied", "conflict")


def _present(card: WhyReply) -> Sentence:
    """Return the answer for a topic that nothing has moved."""
    standing, steps = card["standing"], card["next"]["steps"]
    score = score_text(standing["score"])
    if standing["released_at"]:
        return "Released on ", _time(standing["released_at"]), "."
    if standing["protected_because"]:
        return ("Active: ", _protected(card))
    if not steps:
        return ("Active: no run will change it.",)
    step = steps[0]
    if standing["rung"] != "active" or step["threshold"] is None or step["theta"] is None or step["due"]:
        return (f"{standing['rung'].capitalize()}, with a score of {score}.",)
    limit = _limit(step["threshold"], step["theta"], standing["policy"], standing["version"])
    return f"Active: its score of {score} is above ", limit, "."


def _event(entry: WhyEvent) -> Sentence:
    verb = _VERBS.get(entry["what"], entry["what"].capitalize())
    when = (" on ", _time(entry["at"]))
    if entry["by"] == "hand":
        verb = "Restored" if entry["what"] == "restored" else verb
        reason = f": {entry['reason'].rstrip('.')}" if entry["reason"] else ""
        return verb, *when, *_caller(entry["actor"]), f"{reason}."
    if entry["what"] == "compacted":
        verb = f"Made from {entry.get('sources') or 0:,} memories"
    words = event_words(entry.get("event") or "")
    name = f"{'the' if entry.get('event') == 'cron' else 'a'} {words[0].lower()}{words[1:]}"
    asked = _caller(entry["actor"], " of")
    approved = entry.get("approved_by")
    if approved and approved != entry["actor"]:
        asked = (*asked, *_caller(approved, ", approved by"))
    policy, version = entry.get("policy") or "/", entry.get("version") or 0
    why: Sentence = ()
    if entry.get("rule"):
        why = (": ", _version(policy, version, f"rule “{entry.get('rule')}”"), " matched")
    elif entry.get("threshold") and entry["what"] not in ("compacted", "folded"):
        crossed = "rose above" if entry["what"] == "restored" else "fell below"
        limit = _limit(entry["threshold"] or "", entry.get("theta") or 0.0, policy, version)
        why = (f": its score of {score_text(entry.get('score') or 0.0)} {crossed} ", limit)
    into = entry.get("into")
    compacted: Sentence = (" Compacted into ", Mark(into, "topic", (into,)), ".") if into else ()
    return verb, *when, " by ", Mark(name, "run", (entry.get("run_id"),)), *asked, *why, ".", *compacted


def _uses(reinforced: WhyUses) -> Sentence:
    if not reinforced["total"]:
        return ("No recall has renewed it.",)
    count = Mark(f"Renewed by recalls {_times(reinforced['total'])}", "uses")
    if not reinforced["last"]:
        return count, "."
    return count, ", the last time on " if reinforced["total"] > 1 else ", on ", _time(reinforced["last"][0]["at"]), "."


def _returned(returned: WhyReturned) -> str:
    """Return what happened to the queries that returned a topic and did not renew it."""
    found = f"Recalls also returned it {_times(returned['total'])} without renewing it"
    weak, best, needed = returned["too_weak"], returned["best_relevance"], returned["needed_relevance"]
    why = []
    if weak and best is not None and needed is not None:
        # Rounding up could show a relevance that would have been enough.
        why.append(f"{_times(weak)} its relevance was too low (at most {floor(best * 100) / 100:.2f} of {needed:g})")
    if repeats := returned["total"] - weak:
        why.append(f"{_times(repeats)} the same caller had just asked the same")
    return f"{found}: {', '.join(why)}." if why else f"{found}."


def _next(card: WhyReply, mode: str) -> Iterator[Sentence]:
    ahead, standing = card["next"], card["standing"]
    if ahead["now"] is None:
        return
    if standing["protected_because"]:
        if standing["rung"] != "active":
            yield "From now on, ", _protected(card)
        return
    if ahead["gate"]:
        yield (ahead["gate"],)
    verbs = []
    if ahead["now"] != standing["rung"]:
        verbs.append("release it" if ahead["now"] == "released" else f"make it {ahead['now']}")
    if ahead["may_compact"]:
        verbs.append("compact it with similar memories if there are enough")
    if verbs:
        yield (f"{'Otherwise the' if ahead['gate'] else 'The'} next run would {', or '.join(verbs)}.",)
    later = [step for step in ahead["steps"] if step["at"] is not None and not step["due"]]
    if later:
        steps = _joined((_due(step, card) for step in later), ", ")
        idle = " Idle days do not count." if standing["clock"] == "active" else ""
        yield "If nothing uses it, it is due to be ", *steps, f".{idle}"
    if not (later or verbs):
        # The answer says so for an active topic without steps.
        if ahead["steps"] or standing["rung"] != "active":
            yield ("If nothing changes, no run will change it.",)
    elif mode == "review":
        yield ("Runs over its scope wait for approval.",)
    elif mode == "off":
        yield ("Forgetting is off in its scope.",)


def _due(step: WhyStep, card: WhyReply) -> Sentence:
    """Return a later stage, its day, and the rule or threshold that causes it."""
    begin = (f"{step['rung']} on ", _time(step["at"]) if step["at"] else "")
    if step["rule"]:
        return *begin, f" (by rule “{step['rule']}”)"
    standing = card["standing"]
    limit = _limit(step["threshold"] or "", step["theta"] or 0.0, standing["policy"], standing["version"])
    return *begin, " (below ", limit, ")"


def _protected(card: WhyReply) -> str:
    return f"runs skip it. {' '.join(card['standing']['protected_because'])}"


def _rescue(rescue: WhyRescue) -> Sentence:
    sufficient, latest = rescue["earliest_sufficient"], rescue["latest"]
    if sufficient is None or latest is None:
        return ("One more recall would not have kept it.",)
    if rescue["any_later_use"]:
        return "One more recall before ", _time(latest), " would have kept it."
    return "One more recall between ", _time(sufficient), " and ", _time(latest), " would have kept it."


def _regret(entry: RegretTopic) -> Sentence:
    signs: list[Sentence] = []
    if entry["looked_up"]:
        signs.append((f"looked up {_times(entry['looked_up'])}",))
    if entry["restored_at"]:
        signs.append(("restored on ", _time(entry["restored_at"])))
    if entry["shadow_hits"]:
        times = f"{entry['shadow_hits']:,} questions" if entry["shadow_hits"] > 1 else "one question"
        signs.append((f"among the best answers to {times} (best rank {entry['shadow_rank']})",))
    return "Missed after it was archived on ", _time(entry["archived_at"]), ": ", *_joined(signs, " and "), "."


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _joined(sentences: Iterable[Sentence], between: str) -> Sentence:
    joined: list[str | Mark] = []
    for sentence in sentences:
        joined += [between, *sentence] if joined else sentence
    return tuple(joined)


def _time(at: dt.datetime) -> Mark:
    utc = at.astimezone(dt.UTC)
    return Mark(f"{utc.day} {utc:%B %Y %H:%M} UTC", "time", (at,))


def _caller(name: str | None, lead: str = " by") -> Sentence:
    return (f"{lead} ", Mark(name, "caller", (name,))) if name and name != "system" else ()


def _version(policy: str, number: int, text: str = "") -> Mark:
    return Mark(text or (f"version {number} of {policy}" if number else "the defaults"), "version", (policy, number))


def _limit(name: str, value: float, policy: str, number: int) -> Mark:
    return Mark(f"{name} ({value:g})", "limit", (name, value, policy, number))
