"""The explanation of a topic's state as lines with links: first the answer, then further facts. No query.

The API returns the same explanation as plain values and sentences (``memory.explain.why``).
"""

import datetime as dt
from collections.abc import Iterator

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from memory.core.policy_values import KNOB_LABELS
from memory.explain.replies import RegretTopic, WhyEvent, WhyReply, WhyRescue, WhyStep, WhyUses
from memory.explain.why_sentences import entry_moved, returned_sentence, score_text, times_words
from memory.forgetting.run_text import event_words

_VERBS = {"restored": "Moved up", "folded": "Summarized again"}
_NOTHING = SafeString("")


def answer(card: WhyReply, *, now: dt.datetime) -> SafeString:
    """Return the sentence that says why the topic has its rung, or why it was merged or released."""
    standing = card["standing"]
    last = _last_move(card)
    if standing["merged_into"]:
        return format_html("Merged into {}.", _topic(standing["merged_into"]))
    if last is not None and (standing["released_at"] or standing["rung"] != "active"):
        return _entry(last, now=now)
    if standing["released_at"]:
        return format_html("Released {}.", day(standing["released_at"], now=now))
    if standing["protected_because"] or not card["next"]["steps"]:
        return format_html("Active: {}", _protected(card) or "no run will change it.")
    step = card["next"]["steps"][0]
    if standing["rung"] != "active" or step["threshold"] is None or step["theta"] is None or step["due"]:
        return format_html("{}, with a score of {}.", standing["rung"].capitalize(), score_text(standing["score"]))
    limit = _limit(step["threshold"], step["theta"], standing["policy"], standing["version"])
    return format_html("Active: its score of {} is above {}.", score_text(standing["score"]), limit)


def lines(card: WhyReply, *, now: dt.datetime, mode: str) -> list[SafeString]:
    """Return the lines after the answer. ``mode`` is the mode of the policy."""
    return list(_lines(card, now, mode))


def day(moment: dt.datetime, *, now: dt.datetime) -> SafeString:
    """Return a day as ``14 Nov``, with the year unless it is the current year, and with the exact time on hover."""
    exact = moment.astimezone(dt.UTC)
    words = f"{exact.day} {exact:%b}" if exact.year == now.year else f"{exact.day} {exact:%b %Y}"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', exact.isoformat(), f"{exact:%Y-%m-%d %H:%M:%S} UTC", words
    )


def _lines(card: WhyReply, now: dt.datetime, mode: str) -> Iterator[SafeString]:
    standing, last = card["standing"], _last_move(card)
    if last is not None and standing["rung"] == "active" and not standing["released_at"]:
        yield _entry(last, now=now)
    if last is not None and last["by"] == "run" and last.get("version"):
        reason = last.get("policy_reason")
        policy = _version(last["policy"] or "", last["version"] or 0)
        yield format_html("It followed {}{}.", policy, format_html(": {}", reason.rstrip(".")) if reason else "")
    yield _uses(card["reinforced"], now)
    if returned := returned_sentence(card["returned"]):
        yield SafeString(returned)
    yield from _next(card, now, mode)
    if card["rescue"] is not None:
        yield _rescue(card["rescue"], now)
    for entry in card["regret"][:1]:
        yield _regret(entry, now)


def _last_move(card: WhyReply) -> WhyEvent | None:
    return next((entry for entry in card["history"] if entry_moved(entry)), None)


def _entry(entry: WhyEvent, *, now: dt.datetime) -> SafeString:
    verb = _VERBS.get(entry["what"], entry["what"].capitalize())
    when = day(entry["at"], now=now)
    if entry["by"] == "hand":
        verb = "Restored" if entry["what"] == "restored" else verb
        reason = entry["reason"].rstrip(".")
        by = _caller(entry["actor"])
        return format_html("{} {}{}{}.", verb, when, by, f": {reason}" if reason else "")
    if entry["what"] == "compacted":
        verb = f"Made from {entry.get('sources') or 0:,} memories"
    words = event_words(entry.get("event") or "")
    run = format_html(
        '<a href="{}">{}</a>',
        reverse("console:run", args=[entry.get("run_id")]),
        f"{'the' if entry.get('event') == 'cron' else 'a'} {words[0].lower()}{words[1:]}",
    )
    asked = _caller(entry["actor"], " of") if entry["actor"] != "system" else _NOTHING
    approved = entry.get("approved_by")
    if approved and approved != entry["actor"]:
        asked += _caller(approved, ", approved by")
    why: SafeString = _NOTHING
    if entry.get("rule"):
        rule = _version(entry.get("policy") or "", entry.get("version") or 0, f"rule “{entry.get('rule')}”")
        why = format_html(": {} matched", rule)
    elif entry.get("threshold") and entry["what"] not in ("compacted", "folded"):
        limit = _limit(
            entry["threshold"] or "", entry.get("theta") or 0.0, entry.get("policy") or "/", entry.get("version") or 0
        )
        fell = "rose above" if entry["what"] == "restored" else "fell below"
        why = format_html(": score {} {} {}", score_text(entry.get("score") or 0.0), fell, limit)
    into = entry.get("into")
    into_text = format_html(" Compacted into {}.", _topic(into)) if into else _NOTHING
    return format_html("{} {} by {}{}{}.{}", verb, when, run, asked, why, into_text)


def _uses(reinforced: WhyUses, now: dt.datetime) -> SafeString:
    if not reinforced["total"]:
        return SafeString("No recall has renewed it.")
    times = times_words(reinforced["total"])
    last = reinforced["last"][0]["at"] if reinforced["last"] else None
    return format_html(
        '<a href="#uses">Renewed by recalls {}</a>{}.',
        times,
        format_html("{} {}", ", the last time" if reinforced["total"] > 1 else ",", day(last, now=now)) if last else "",
    )


def _next(card: WhyReply, now: dt.datetime, mode: str) -> Iterator[SafeString]:
    ahead, standing = card["next"], card["standing"]
    if ahead["now"] is None:
        return
    if standing["protected_because"]:
        if standing["rung"] != "active":
            yield format_html("From now on, {}", _protected(card))
        return
    if ahead["gate"]:
        yield format_html("{}", ahead["gate"])
    verbs = []
    if ahead["now"] != standing["rung"]:
        verbs.append("release it" if ahead["now"] == "released" else f"make it {ahead['now']}")
    if ahead["may_compact"]:
        verbs.append("compact it with similar memories if there are enough")
    if verbs:
        begins = "Otherwise the" if ahead["gate"] else "The"
        yield format_html("{} next run would {}.", begins, ", or ".join(verbs))
    later = [step for step in ahead["steps"] if step["at"] is not None and not step["due"]]
    if later:
        steps = format_html_join(", ", "{} on {} ({})", ((each["rung"], *_due(each, card, now)) for each in later))
        idle = " Idle days do not count." if standing["clock"] == "active" else ""
        yield format_html("If nothing uses it, it is due to be {}.{}", steps, idle)
    if (later or verbs) and mode == "review":
        yield SafeString("Runs over its scope wait for approval.")
    elif (later or verbs) and mode == "off":
        yield SafeString("Forgetting is off in its scope.")


def _due(step: WhyStep, card: WhyReply, now: dt.datetime) -> tuple[SafeString, SafeString]:
    """Return the day on which a step is due, and the rule or threshold that causes it."""
    if step["rule"]:
        by = format_html("by rule “{}”", step["rule"])
    else:
        standing = card["standing"]
        limit = _limit(step["threshold"] or "", step["theta"] or 0.0, standing["policy"], standing["version"])
        by = format_html("below {}", limit)
    return day(step["at"] or now, now=now), by


def _protected(card: WhyReply) -> SafeString:
    because = card["standing"]["protected_because"]
    return format_html("runs skip it. {}", " ".join(because)) if because else _NOTHING


def _rescue(rescue: WhyRescue, now: dt.datetime) -> SafeString:
    sufficient, latest = rescue["earliest_sufficient"], rescue["latest"]
    if sufficient is None or latest is None:
        return SafeString("One more recall would not have kept it.")
    until = day(latest, now=now)
    if rescue["any_later_use"]:
        return format_html("One more recall before {} would have kept it.", until)
    return format_html("One more recall between {} and {} would have kept it.", day(sufficient, now=now), until)


def _regret(entry: RegretTopic, now: dt.datetime) -> SafeString:
    parts: list[str] = []
    if entry["looked_up"]:
        parts.append(f"looked up {entry['looked_up']:,} times" if entry["looked_up"] > 1 else "looked up once")
    if entry["restored_at"]:
        parts.append(format_html("restored {}", day(entry["restored_at"], now=now)))
    if entry["shadow_hits"]:
        times = f"{entry['shadow_hits']:,} questions" if entry["shadow_hits"] > 1 else "one question"
        parts.append(f"among the best answers to {times} (best rank {entry['shadow_rank']})")
    signs = format_html_join(" and ", "{}", ((part,) for part in parts))
    return format_html("Missed after it was archived {}: {}.", day(entry["archived_at"], now=now), signs)


def _caller(name: str | None, lead: str = " by") -> SafeString:
    if not name or name == "system":
        return _NOTHING
    address = f"{reverse('console:caller')}?{urlencode({'name': name})}"
    return format_html('{} <a href="{}">{}</a>', lead, address, name.removeprefix("user:"))


def _topic(topic_id: str) -> SafeString:
    return format_html('<a href="{}">another memory</a>', reverse("console:topic", args=[topic_id]))


def _version(policy: str, number: int, words: str = "") -> SafeString:
    """Return a link to a version of a policy. The defaults have no page, so they are plain text."""
    if not number:
        return format_html("{}", words or "the defaults")
    address = _version_address(policy, number)
    return format_html('<a href="{}">{}</a>', address, words or f"version {number} of {policy}")


def _limit(name: str, value: float, policy: str, number: int) -> SafeString:
    """Return a threshold as a link to the version that set it, with its names and this version on hover."""
    title = f"{KNOB_LABELS.get(name, name)} ({name}), {f'version {number} of {policy}' if number else 'the default'}"
    if not number:
        return format_html('<span title="{}">{}</span>', title, f"{value:g}")
    address = _version_address(policy, number)
    return format_html('<a href="{}" title="{}">{}</a>', address, title, f"{value:g}")


def _version_address(policy: str, number: int) -> str:
    return f"{reverse('console:policy_version')}?{urlencode({'scope': policy, 'number': str(number)})}"
