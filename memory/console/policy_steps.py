"""The tabs Values and Rules: the steps that change a draft, and the save. A step changes some texts of the form, keeps
the others, and stores nothing."""

from collections.abc import Mapping

from django.contrib import messages
from django.http import QueryDict
from django.utils import timezone

from memory.console.page import ConsoleRequest
from memory.console.policy_form import MEMBERS, DraftForm, draft_of, draft_query, draft_texts, preset_taken, rules_read
from memory.console.rule_form import GROUPS, RuleForm, rule_form_new, rule_form_of, rule_form_sent
from memory.core.errors import ValueRefused
from memory.core.policy_values import KNOBS
from memory.core.problem_codes import ProblemCode
from memory.policy.draft import draft_parse
from memory.policy.draft_steps import (
    draft_with_moved,
    draft_with_preset,
    draft_with_rule,
    draft_with_set,
    draft_with_switched,
    draft_without_rule,
)
from memory.policy.rule_parsing import rule_parse, rules_parse
from memory.policy.save import policy_save
from memory.policy.snapshot import Policies, SetPolicy

Texts = dict[str, str]


def draft_opened(said: Mapping[str, str], *, policies: Policies, scope: str) -> Texts:
    """Return the initial texts of an editor. ``said`` are the parameters of the URL. They contain a whole draft, or
    changes to the stored policy.

    The parameters ``preset``, ``add`` (a shipped set of rules) and ``switch`` (a rule to enable or disable) each
    request one change. No query. Raises ``ValueRefused`` if the named preset, set or rule does not exist.
    """
    start = draft = policies.set_at(scope)
    if "base_version" in said:
        texts = {name: said[name] for name in (*MEMBERS, *KNOBS) if said.get(name)}
        return (_rules_text(start) if start.rules else {}) | texts
    if "preset" in said:
        draft = draft_with_preset(draft, said["preset"])
    if "add" in said:
        draft = draft_with_set(draft, said["add"])
    if "switch" in said:
        draft = draft_with_switched(policies, draft, said["switch"])
    # Links of other pages may also name single values.
    single = {name: said[name] for name in KNOBS if name in said}
    # The text of the rules is omitted if neither the stored policy nor the draft has rules.
    ruled = bool(start.rules or draft.rules)
    return draft_texts(draft, rules=ruled) | single | {"base_version": str(policies.numbers.get(scope, 0))}


def draft_stepped(form: DraftForm, said: Mapping[str, str]) -> Texts:
    """Return the texts of ``form`` after the step that ``said`` requests. No query. Raises ``ValueRefused`` if the step
    is not possible, or if it changes rules that cannot be read."""
    texts = dict(draft_query(form))
    if said.get("keep"):
        return texts | {"base_version": str(form.policies.numbers.get(form.scope, 0))}
    if said.get("preset_taken"):
        return preset_taken(form)
    if said.get("add"):
        return texts | _rules_text(draft_with_set(_rules_draft(form, texts), said.get("set", "")))
    if said.get("switch"):
        return texts | _rules_text(draft_with_switched(form.policies, _rules_draft(form, texts), said["switch"]))
    if said.get("drop"):
        return texts | _rules_text(draft_without_rule(_rules_draft(form, texts), said["drop"]))
    for move, by in (("up", -1), ("down", 1)):
        if said.get(move):
            return texts | _rules_checked(draft_with_moved(_rules_draft(form, texts), said[move], by=by))
    return texts


def rule_stepped(form: DraftForm, said: QueryDict) -> tuple[Texts, RuleForm | None]:
    """Return the texts of ``form`` after a step of the rule editor, and the form of the rule if the editor stays open.
    ``said`` names the step: add or edit a rule, add or remove a row, or put the edited rule into the draft.

    No query. Raises ``ValueRefused`` if the rules of the draft cannot be read, or the rule does not exist.
    """
    texts = dict(draft_query(form))
    if said.get("new"):
        return texts, rule_form_new()
    if said.get("edit"):
        rule = next((rule for rule in _rules_draft(form, texts).rules if rule.name == said["edit"]), None)
        if rule is None:
            raise ValueRefused(f"The draft has no rule {said['edit'][:100]!r}.", code=ProblemCode.NOT_FOUND)
        return texts, rule_form_of(rule)
    if not said.getlist("rule-name") or said.get("cancel"):
        return texts, None
    edited = rule_form_sent(said)
    if said.get("row_add"):
        last = edited.rows[-1] if edited.rows else {}
        inside = int(last.get("what") in GROUPS) + int(last.get("level", "").isdecimal() and last["level"])
        return texts, edited.with_rows([*edited.rows, {"level": str(inside)}])
    if said.get("row_drop"):
        return texts, edited.with_rows([row for at, row in enumerate(edited.rows) if str(at) != said["row_drop"]])
    if said.get("apply") or said.get("save"):
        stored = edited.rule(form.scope)
        if stored is None:
            return texts, edited
        rule = rule_parse(stored, scope=form.scope)
        draft = draft_with_rule(_rules_draft(form, texts), rule, replaced=edited.cleaned_data["editing"])
        try:
            return texts | _rules_checked(draft), None
        except ValueRefused as problem:
            edited.refuse(problem)
    return texts, edited


def rules_of_draft(form: DraftForm) -> SetPolicy | None:
    """Return the preset and rules of the draft, even if its values are invalid; None if the rules cannot be read."""
    try:
        return _rules_draft(form, dict(draft_query(form)))
    except ValueRefused:
        return None


def _rules_draft(form: DraftForm, texts: Texts) -> SetPolicy:
    rules = rules_read(texts.get("rules", ""))
    return draft_parse(form.policies, form.scope, preset=texts.get("preset"), values={}, rules=rules)


def _rules_checked(draft: SetPolicy) -> Texts:
    """Return the text of rules that a step has changed. Raises ``ValueRefused`` if the rules are not valid together."""
    rules_parse(draft.as_stored()["rules"], scope=draft.scope)
    return _rules_text(draft)


def _rules_text(draft: SetPolicy) -> Texts:
    return {"rules": draft_texts(draft, rules=True)["rules"]}


def draft_save(request: ConsoleRequest, form: DraftForm, *, reason: str) -> None:
    """Save a valid draft as the next version of its scope's policy, and show a notice.

    Raises the errors of ``policy_save``.
    """
    preset, values, rules = draft_of(form)
    base = form.cleaned_data["base_version"]
    version = policy_save(
        form.scope,
        preset=preset,
        values=values,
        rules=rules,
        author=request.principal.actor,
        reason=reason,
        now=timezone.now(),
        base_version=base,
    )
    if version.number == base:
        messages.info(request, "The draft equals the current version, so no new version was created.")
    else:
        messages.success(request, f"Saved: version {version.number} of {form.scope} is in force.")
