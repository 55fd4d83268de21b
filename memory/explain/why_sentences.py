"""The why-card in sentences."""

import datetime as dt
from math import floor

from memory.explain.replies import RegretTopic, WhyEvent, WhyReply, WhyRescue, WhyReturned, WhyStanding, WhyUses

_EVENTS = {
    "cron": "the scheduled run",
    "memory_pressure": "a run under memory pressure",
    "manual": "a manual run",
    "ingest_complete": "a run after an ingest",
    "query_complete": "a run after a recall",
}


def why_sentences(card: WhyReply) -> list[str]:
    """Return a why-card as sentences: state, reason, uses, next steps, and what would have kept the topic."""
    sentences = [_standing(card["standing"])]
    last = next((entry for entry in card["history"] if entry_moved(entry)), None)
    if last is not None:
        sentences.append(_entry(last))
    sentences.append(_uses(card["reinforced"]))
    if returned := returned_sentence(card["returned"]):
        sentences.append(returned)
    sentences += _next(card)
    if card["rescue"] is not None:
        sentences.append(_rescue(card["rescue"]))
    sentences += [_regret(entry) for entry in card["regret"][:1]]
    return sentences


def time_text(at: dt.datetime) -> str:
    """Return a time as ``3 October 2026 03:00 UTC``."""
    at = at.astimezone(dt.UTC)
    return f"{at.day} {at:%B %Y %H:%M} UTC"


def _standing(standing: WhyStanding) -> str:
    if standing["merged_into"]:
        return f"It was merged into {standing['merged_into']}."
    if standing["released_at"]:
        return f"It was released on {time_text(standing['released_at'])}; no recall returns it."
    policy = (
        f"version {standing['version']} of the policy of {standing['policy']}"
        if standing["version"]
        else ("the defaults")
    )
    return (
        f"It is {standing['rung']}; its score is {score_text(standing['score'])} ({standing['strategy']}, by {policy})."
    )


def score_text(score: float) -> str:
    """Return a score as the console writes it."""
    return f"{score:.3g}" if not 0 < score < 0.0001 else "less than 0.0001"


def entry_moved(entry: WhyEvent) -> bool:
    """Return whether an event of a history changed the state of the topic."""
    return entry["what"] not in ("created", "salience set", "undone") and entry["state"] in ("applied", "conflict")


def _entry(entry: WhyEvent) -> str:
    when, who = time_text(entry["at"]), f" by {entry['actor']}" if entry["actor"] else ""
    if entry["by"] == "hand":
        reason = f": {entry['reason']}" if entry["reason"] else ""
        return f"It was {entry['what']}{who} on {when}{reason}."
    why, verb = "", entry["what"]
    if entry["what"] == "compacted":
        verb = f"made from {entry['sources'] or 0:,} memories"
    if entry["rule"]:
        why = f", by rule {entry['rule']!r}"
    elif entry["threshold"] and entry["what"] not in ("compacted", "folded"):
        side = "above" if entry["what"] == "restored" else "below"
        score = score_text(entry["score"] or 0.0)
        why = f", because its score of {score} was {side} {entry['threshold']} ({entry['theta']:g})"
    under = f", under version {entry['version']} of the policy of {entry['policy']}" if entry["version"] else ""
    reason = f" ({entry['policy_reason']})" if entry["policy_reason"] else ""
    into = f" It was compacted into {entry['into']}." if entry.get("into") else ""
    run = _EVENTS.get(entry["event"] or "", f"a run on {entry['event']}")
    by_whom = f" that {entry['actor']} started" if entry["actor"] and entry["actor"] != "system" else ""
    if entry.get("approved_by") and entry["approved_by"] != entry["actor"]:
        by_whom += f"{' and' if by_whom else ' that'} {entry['approved_by']} approved"
    return f"It was {verb} by {run}{by_whom} on {when}{why}{under}{reason}.{into}"


def _uses(reinforced: WhyUses) -> str:
    if not reinforced["total"]:
        return "No recall has renewed it."
    last = f", the last time on {time_text(reinforced['last'][0]['at'])}" if reinforced["last"] else ""
    return f"Recalls renewed it {times_words(reinforced['total'])}{last}."


def returned_sentence(returned: WhyReturned) -> str:
    """Return what happened to the queries that returned a topic and did not renew it; empty if there are none."""
    if not returned["total"]:
        return ""
    found = f"Recalls also returned it {times_words(returned['total'])} without renewing it"
    weak, best, needed = returned["too_weak"], returned["best_relevance"], returned["needed_relevance"]
    why = []
    if weak and best is not None and needed is not None:
        # Rounding up could show a relevance that would have been enough.
        why.append(
            f"{times_words(weak)} its relevance was too low (at most {floor(best * 100) / 100:.2f} of {needed:g})"
        )
    if repeats := returned["total"] - weak:
        why.append(f"{times_words(repeats)} the same caller had just asked the same")
    return f"{found}: {', '.join(why)}." if why else f"{found}."


def times_words(number: int) -> str:
    """Return "once" or a number of times."""
    return "once" if number == 1 else f"{number:,} times"


def _next(card: WhyReply) -> list[str]:
    ahead = card["next"]
    if ahead["now"] is None:
        return []
    protected = card["standing"]["protected_because"]
    if protected:
        return [f"Runs do not change it. {' '.join(protected)}"]
    sentences, verbs = [], []
    if ahead["now"] != card["standing"]["rung"]:
        verbs.append("release it" if ahead["now"] == "released" else f"make it {ahead['now']}")
    if ahead["may_compact"]:
        verbs.append("compact it with similar memories if there are enough")
    if verbs:
        sentences.append(f"{'Otherwise the' if ahead['gate'] else 'The'} next run would {', or '.join(verbs)}.")
    for step in ahead["steps"]:
        if step["at"] is not None and not step["due"]:
            by = f"by rule {step['rule']!r}" if step["rule"] else f"below {step['theta']:g}"
            sentences.append(f"If nothing uses it, it is due to be {step['rung']} on {time_text(step['at'])}, {by}.")
    if sentences and card["standing"]["clock"] == "active":
        sentences.append("Idle days do not count.")
    if not sentences:
        sentences.append("If nothing changes, no run will change it.")
    return [ahead["gate"], *sentences] if ahead["gate"] else sentences


def _rescue(rescue: WhyRescue) -> str:
    sufficient, latest = rescue["earliest_sufficient"], rescue["latest"]
    if sufficient is None or latest is None:
        return "One more recall would not have kept it from that run."
    until = time_text(latest)
    if rescue["any_later_use"]:
        return f"One more recall before {until} would have kept it."
    return f"One more recall between {time_text(sufficient)} and {until} would have kept it."


def _regret(entry: RegretTopic) -> str:
    parts = []
    if entry["looked_up"]:
        parts.append(f"looked up {entry['looked_up']:,} times" if entry["looked_up"] > 1 else "looked up once")
    if entry["restored_at"]:
        parts.append(f"restored on {time_text(entry['restored_at'])}")
    if entry["shadow_hits"]:
        times = f"{entry['shadow_hits']:,} questions" if entry["shadow_hits"] > 1 else "one question"
        parts.append(f"among the best answers to {times} (at best on place {entry['shadow_rank']})")
    return f"After it was archived on {time_text(entry['archived_at'])} it was {' and '.join(parts)}."
