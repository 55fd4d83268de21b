"""manage.py policy: reads and sets policies at the terminal."""

import argparse
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access.principal import TERMINAL
from memory.core.errors import ValueRefused
from memory.core.policy_presets import PRESETS
from memory.core.policy_values import KNOBS
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import scope_normalize
from memory.management.store_command import CommandRefused, StoreCommand, VerbCommand
from memory.models import PolicyVersion
from memory.policy.cron import cron_next
from memory.policy.diff import value_words
from memory.policy.draft import knob_name
from memory.policy.effective import policies_current
from memory.policy.read import policy_show, policy_versions, version_as_json
from memory.policy.save import policy_rollback, policy_save, version_present
from memory.policy.shipped_rule_sets import SHIPPED_RULE_SETS


class Command(VerbCommand, StoreCommand):
    """Policies at the terminal. A change takes effect at once, in every process."""

    help = "Show and set what is forgotten, how and when."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        show = verbs.add_parser("show", help="Show the values in force at a scope, and the source of each.")
        show.add_argument("scope", nargs="?", default="/")
        show.add_argument("--set-only", action="store_true", help="Omit the defaults.")
        change = verbs.add_parser("set", help="Change some values and keep the others.")
        change.add_argument(
            "words", nargs="*", metavar="[SCOPE] NAME=VALUE", help="The scope (default /) and the new values."
        )
        change.add_argument("--preset", choices=[*PRESETS, "none"], help="Use this preset, or none.")
        change.add_argument(
            "--unset", action="append", default=[], metavar="NAME", help="Remove this value, so that it is inherited."
        )
        change.add_argument(
            "--add-rules",
            action="append",
            default=[],
            choices=list(SHIPPED_RULE_SETS),
            help="Add this shipped set of rules.",
        )
        change.add_argument(
            "--drop-rule", action="append", default=[], metavar="NAME", help="Remove this rule from the scope."
        )
        _reason_add(change)
        versions = verbs.add_parser("versions", help="List the versions of a policy, newest first.")
        versions.add_argument("scope", nargs="?", default="/")
        versions.add_argument("--limit", type=int, default=20)
        rollback = verbs.add_parser("rollback", help="Create a new version with the content of an older one.")
        rollback.add_argument("scope", nargs="?", default="/")
        rollback.add_argument(
            "--to",
            type=int,
            required=True,
            metavar="VERSION",
            help="The number of the older version; 0 removes all values.",
        )
        _reason_add(rollback)

    def _show(self, options: dict[str, Any]) -> None:
        policy = policy_show(options["scope"])
        version = f"version {policy['version']}" if policy["version"] else "no policy"
        self.stdout.write(
            f"{policy['scope']}: {version}" + (f", preset {policy['preset']}" if policy["preset"] else "")
        )
        for name, entry in policy["effective"].items():
            if options["set_only"] and entry["from"] == "default":
                continue
            preset = f" by preset {entry['preset']}" if "preset" in entry else ""
            self.stdout.write(f"  {name:<28} {value_words(entry['value']):<20} {entry['from']}{preset}")
        for rule in policy["rules_in_words"]:
            state = "" if rule["enabled"] else " (disabled)"
            self.stdout.write(f"  rule {rule['name']}{state}, {rule['from']}: {rule['words']}")
        for work in policy["rekeying"]:
            done = "not started" if work["total"] is None else f"{work['done']} of {work['total']} topics"
            self.stdout.write(f"  new half-life below {work['scope']}: {done}")
        self._next_run(policy["scope"])

    def _set(self, options: dict[str, Any]) -> None:
        scope, changed = _words_read(options["words"])
        present = version_present(scope)
        values = {**present.values, **changed}
        for name in map(knob_name, options["unset"]):
            if values.pop(name, None) is None:
                raise ValueRefused(
                    f"{name} is not set at {scope}, so there is nothing to unset.", code=ProblemCode.INVALID_POLICY
                )
        preset = {None: present.preset, "none": ""}.get(options["preset"], options["preset"])
        version = policy_save(
            scope,
            preset=preset,
            values=values,
            rules=_rules_changed(present, options),
            author=TERMINAL.actor,
            reason=options["reason"],
            now=timezone.now(),
            base_version=present.number,
        )
        self._version_print(version, present.number)

    def _versions(self, options: dict[str, Any]) -> None:
        limit = options["limit"]
        if not 1 <= limit <= 10_000:
            raise CommandRefused("--limit must lie between 1 and 10000.", ProblemCode.INVALID_MEMBER)
        versions, following = policy_versions(options["scope"], limit=limit)
        if not versions:
            self.stdout.write("This scope has no policy of its own.")
        for item in versions:
            back = "" if item["rolled_back_to"] is None else f", back to version {item['rolled_back_to']}"
            at = f"{item['created_at']:%Y-%m-%d %H:%M} UTC"
            self.stdout.write(f"version {item['version']}{back}, {at}, {item['author']}: {item['reason']}")
            for line in item["diff"]:
                self.stdout.write(f"  {line['in_words']}")
        if following is not None:
            self.stdout.write(f"{following - 1} older versions; use --limit to list more.")

    def _rollback(self, options: dict[str, Any]) -> None:
        scope = scope_normalize(options["scope"])
        before = version_present(scope).number
        version = policy_rollback(
            scope, to=options["to"], author=TERMINAL.actor, reason=options["reason"], now=timezone.now()
        )
        self._version_print(version, before)

    def _version_print(self, version: PolicyVersion, before: int) -> None:
        if version.number == before:
            self.stdout.write(f"Nothing was changed: {version.scope} already has these values.")
            return
        self.stdout.write(f"{version.scope} now has version {version.number}.")
        for line in version_as_json(version)["diff"]:
            self.stdout.write(f"  {line['in_words']}")
        if policies_current().rekeying_touches(version.scope):
            self.stdout.write("The worker applies the new half-life to the topics in the background.")
        self._next_run(version.scope)

    def _next_run(self, scope: str) -> None:
        knobs = policies_current().knobs(scope_normalize(scope))
        if knobs.mode == "off":
            self.stdout.write("No run is scheduled, because mode is off.")
        else:
            at = cron_next(knobs.cron, now=timezone.now())
            self.stdout.write(f"Next scheduled run: {at:%Y-%m-%d %H:%M} UTC.")


def _reason_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", default="", help="The reason, for the journal.")


def _words_read(words: list[str]) -> tuple[str, dict[str, str]]:
    """Return the scope, and the values by canonical name. The scope is the first word unless this word is an
    assignment."""
    words = list(words)
    scope = scope_normalize(words.pop(0)) if words and _is_scope(words[0]) else "/"
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ValueRefused(f"{word!r} is not of the form NAME=VALUE.")
        name = knob_name(name.strip())
        if name in values:
            raise ValueRefused(f"{name} is given twice.")
        values[name] = value
    return scope, values


def _is_scope(word: str) -> bool:
    # A scope may contain an equals sign; the name of a value contains no slash.
    return word.startswith("/") or ("=" not in word and word not in KNOBS)


def _rules_changed(present: PolicyVersion, options: dict[str, Any]) -> list[Any] | None:
    if not options["add_rules"] and not options["drop_rule"]:
        return None
    names = {rule["name"] for rule in present.rules}
    for name in options["drop_rule"]:
        if name not in names:
            raise ValueRefused(f"There is no rule {name!r} set at {present.scope}.", code=ProblemCode.NOT_FOUND)
    kept = (rule for rule in present.rules if rule["name"] not in options["drop_rule"])
    return [*kept, *options["add_rules"]]
