"""A draft of a policy as a form: one field per value that may be set, a preset, and rules as JSON.

The form only collects texts. ``memory.policy`` parses and checks them, and each of its errors is shown at the field
that the error names. A URL can contain a whole draft, so a draft can be stored, sent and reloaded.
"""

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms

from memory.core.errors import MemoryProblem, ValueRefused
from memory.core.json_limits import json_guarded
from memory.core.policy_presets import PRESETS
from memory.core.policy_values import KNOB_LABELS, KNOBS, THRESHOLDS, Knob, KnobValue
from memory.core.problem_codes import ProblemCode
from memory.policy.draft import policies_drafted, thresholds_wrong, values_parse
from memory.policy.explain import GROUPS
from memory.policy.read import effective_as_json, number_words
from memory.policy.replies import EffectiveValue
from memory.policy.snapshot import DEFAULT, ENVIRONMENT, Policies, SetPolicy

# The parameters of a draft in a URL, in addition to its values.
MEMBERS = ("preset", "rules", "base_version")
MAX_RULES_TEXT = 100_000
MAX_DEPTH = 32
# The labels of choices, for choices whose label differs from the value.
CHOICE_WORDS = {
    "auto": "automatic",
    "review": "needs approval",
    "true": "yes",
    "false": "no",
    "half_life": "half-life",
    "active_forgetting": "active forgetting",
}
# Errors show labels instead of these names. Names that are also plain words, such as mode, are not replaced.
_NAMES = re.compile(rf"\b(?:{'|'.join(name for name in KNOBS if '_' in name)})\b")
DraftContent = tuple[str, dict[str, Any], list[Any] | None]


class DraftForm(forms.Form):
    """A draft of the policy of one scope, and the snapshot of the policies on which it is based. No query.

    ``data`` are the parameters of a URL or of a submitted form. Without ``base_version``, the stored policy fills the
    fields that ``data`` omits, so that a link can name a single value. With ``rules_shown``, the stored policy also
    fills the rules. Otherwise, their text stays empty, and a save keeps the stored rules. If the form is valid, the
    validation sets ``drafted`` to the snapshot with the draft.
    """

    # ``memory.policy`` checks the choices, so they are plain texts here.
    preset = forms.CharField(
        required=False, label="Preset", widget=forms.Select(choices=[("", "None"), *((name, name) for name in PRESETS)])
    )
    rules = forms.CharField(
        required=False,
        max_length=MAX_RULES_TEXT,
        label="Rules set here, as JSON",
        help_text="A list of rules or names of rule sets. Leave empty to keep the current rules; [] removes them.",
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "class": "mono"}),
    )
    base_version = forms.IntegerField(required=False, min_value=0, widget=forms.HiddenInput)

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        *,
        policies: Policies,
        scope: str,
        prefix: str | None = None,
        rules_shown: bool = False,
    ) -> None:
        self.policies, self.scope = policies, scope
        self.drafted: Policies | None = None
        lead = f"{prefix}-" if prefix else ""
        said = {name: str(data[lead + name]) for name in (*MEMBERS, *KNOBS) if data and lead + name in data}
        if "base_version" not in said:
            said = {**draft_texts(policies.set_at(scope), rules=rules_shown), **said}
            said["base_version"] = str(policies.numbers.get(scope, 0))
        super().__init__({lead + name: text for name, text in said.items()}, prefix=prefix)
        self.inherited = self._inherited(said)
        for name, knob in KNOBS.items():
            self.fields[name] = _field(name, knob, self.inherited[name])

    def _inherited(self, said: Mapping[str, str]) -> dict[str, EffectiveValue]:
        """Return, for each value, what applies while its field is empty, under the preset and strategy of the draft."""
        preset, strategy = said.get("preset", ""), said.get("strategy", "")
        under = SetPolicy(self.scope, 0, preset if preset in PRESETS else "")
        effective = effective_as_json(self.policies.with_policy(under).effective(self.scope))
        if strategy in KNOBS["strategy"].choices:
            # The defaults of the thresholds depend on the strategy.
            chosen = dataclasses.replace(under, values={"strategy": strategy})
            of_strategy = effective_as_json(self.policies.with_policy(chosen).effective(self.scope))
            under, effective = chosen, {**of_strategy, "strategy": effective["strategy"]}
        # The typed thresholds raise those that are left empty.
        typed: dict[str, KnobValue] = {}
        for name in THRESHOLDS:
            with contextlib.suppress(MemoryProblem):
                typed |= values_parse({name: _typed(name, said.get(name, ""))})
        ordered = dataclasses.replace(under, values={**under.values, **typed})
        raised = effective_as_json(self.policies.with_policy(ordered).effective(self.scope))
        return {**effective, **{name: raised[name] for name in THRESHOLDS if name not in typed}}

    def clean(self) -> dict[str, Any]:
        """Check the draft as a save would; each error is shown at its field."""
        said: dict[str, Any] = self.cleaned_data
        for name in KNOBS:
            try:
                values_parse({name: _typed(name, said.get(name, ""))})
            except MemoryProblem as problem:
                self.add_error(name, draft_error(problem))
        try:
            said["rules"] = rules_read(said.get("rules", ""))
        except ValueRefused as problem:
            self.add_error("rules", draft_error(problem))
        if not self.errors:
            try:
                preset, values, rules = draft_of(self)
                self.drafted = policies_drafted(self.policies, self.scope, preset=preset, values=values, rules=rules)
            except MemoryProblem as problem:
                # Each value is valid alone, so this is a contradiction between two of them.
                if problem.member in THRESHOLDS:
                    self._thresholds_refuse(said)
                else:
                    self.add_error(field_named(problem), draft_error(problem))
        return said

    def _thresholds_refuse(self, said: Mapping[str, Any]) -> None:
        """If two thresholds contradict each other, show an error with their labels: at the threshold that the draft
        changes, else at the upper one."""
        typed = values_parse({name: said[name] for name in THRESHOLDS if said[name]})
        wrong = thresholds_wrong(SetPolicy(self.scope, 0, said["preset"], typed))
        if wrong is None:
            return
        (upper, above), (lower, below) = wrong
        stored = draft_texts(self.policies.set_at(self.scope))
        changed = max((upper, lower), key=lambda name: (said[name] != stored.get(name, ""), bool(said[name])))
        self.add_error(
            changed,
            forms.ValidationError(
                f"{KNOB_LABELS[lower]} ({below:g}) must not be above {KNOB_LABELS[upper]} ({above:g}).",
                code=ProblemCode.INVALID_POLICY,
            ),
        )

    @property
    def groups(self) -> Iterator[dict[str, Any]]:
        """The groups of fields for the template. Each has a title, its fields, the number of fields that are set, and
        whether the group is open.

        Each field has the source of the value that applies while the field is empty, and whether the policy of this
        scope sets the value.
        """
        in_force = effective_as_json(self.policies.effective(self.scope))
        for group, title in GROUPS.items():
            names = [name for name, knob in KNOBS.items() if knob.group == group]
            lines = [
                {
                    "field": self[name],
                    "source": source_words(self.inherited[name]),
                    "here": in_force[name]["from"] == self.scope
                    and not in_force[name].keys() & {"preset", "raised_from"},
                }
                for name in names
            ]
            wrong = any(self[name].errors for name in names)
            count = sum(bool(self[name].value()) for name in names)
            yield {"title": title, "lines": lines, "set": count, "open": wrong or count or group == "ladder"}

    @property
    def thresholds(self) -> list[dict[str, Any]]:
        """The three thresholds of the ladder, from the highest, each with the source of the value that applies while
        its field is empty."""
        names = ("theta_summary", "theta_detach", "forget_salience_threshold")
        return [{"field": self[name], "source": source_words(self.inherited[name])} for name in names]

    @property
    def held(self) -> dict[str, dict[str, str]]:
        """For each text field: the value that applies while the field is empty, and the source of this value."""
        return {
            name: {"value": held_words(self.inherited[name]), "source": source_words(self.inherited[name])}
            for name, field in self.fields.items()
            if "placeholder" in field.widget.attrs
        }

    @property
    def preset_meaning(self) -> str:
        """The description of the chosen preset."""
        chosen = self["preset"].value()
        return PRESETS[chosen].meaning if chosen in PRESETS else ""


def draft_of(form: DraftForm) -> DraftContent:
    """Return the preset, values and rules of a form whose fields have no errors, as arguments of ``policy_save``."""
    said = form.cleaned_data
    values = {name: _typed(name, said[name]) for name in KNOBS if said.get(name, "")}
    return said.get("preset", ""), values, said.get("rules")


def draft_texts(draft: SetPolicy, *, rules: bool = False) -> dict[str, str]:
    """Return a policy as the texts of the form's fields, without empty fields. ``rules`` says whether the rules are
    included; a form without rules keeps the stored ones."""
    texts = {name: value_text(value) for name, value in draft.values.items()}
    if draft.preset:
        texts["preset"] = draft.preset
    if rules:
        texts["rules"] = json.dumps([rule.as_json() for rule in draft.rules], indent=2, ensure_ascii=False)
    return texts


def draft_query(form: DraftForm, *, prefix: str = "") -> list[tuple[str, str]]:
    """Return the draft of ``form`` as URL parameters, with ``prefix`` before their names."""
    lead = f"{prefix}-" if prefix else ""
    members = ((name, form[name].value()) for name in (*MEMBERS, *KNOBS))
    return [(lead + name, str(value)) for name, value in members if value not in (None, "")]


def preset_taken(form: DraftForm) -> dict[str, str]:
    """Return the texts of ``form``, but leave out each value that its preset supplies."""
    preset = form["preset"].value()
    design = PRESETS[preset].values if preset in PRESETS else {}
    return {name: text for name, text in draft_query(form) if name not in design}


def rules_read(text: str) -> list[Any] | None:
    """Return the rules in a JSON text, None for an empty text. Raises ``ValueRefused``."""
    if not text.strip():
        return None
    try:
        found = json_guarded(text.encode(errors="replace"), max_depth=MAX_DEPTH)
    except MemoryProblem as problem:
        raise ValueRefused(problem.sentence.replace("The body", "What is written here"), code=problem.code) from problem
    if not isinstance(found, list):
        raise ValueRefused("Rules must be a list.", code=ProblemCode.INVALID_RULE)
    return found


def field_named(problem: MemoryProblem) -> str | None:
    """Return the field that an error is about, None if the error is about the whole draft."""
    if problem.member in KNOBS or problem.member == "preset":
        return problem.member
    return "rules" if problem.member.startswith("rules") else None


def draft_error(problem: MemoryProblem) -> forms.ValidationError:
    """Return a problem of a draft as a form error, with the labels of values instead of their names."""
    sentence = _NAMES.sub(lambda found: KNOB_LABELS[found[0]], problem.sentence)
    return forms.ValidationError(sentence, code=problem.code)


def value_text(value: KnobValue) -> str:
    """Return a value as the text of its field. The items of a list are separated by commas; a single comma is the empty
    list. A list that cannot be written in this way is JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        plain = not any("," in word or word.startswith("[") for word in value)
        return (", ".join(value) or ",") if plain else json.dumps(value, ensure_ascii=False)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _typed(name: str, text: str) -> object:
    """Return the text of a field as ``memory.policy`` expects it: None for an empty text, the parsed list for JSON."""
    if not text:
        return None
    if KNOBS[name].type in ("words", "scopes") and text.startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _field(name: str, knob: Knob, inherited: Mapping[str, Any]) -> forms.CharField:
    held = held_words(inherited)
    hint = "; ".join(filter(None, [knob.meaning, bounds_words(knob)]))
    widget: forms.Widget
    if knob.type in ("switch", "choice"):
        choices = ("true", "false") if knob.type == "switch" else knob.choices
        widget = forms.Select(
            choices=[("", f"{held} (inherited)"), *((each, CHOICE_WORDS.get(each, each)) for each in choices)]
        )
    else:
        # Not a number field, so that invalid input stays visible beside its error.
        modes = {"number": "decimal", "count": "numeric"}
        widget = forms.TextInput(
            attrs={"placeholder": held, "autocomplete": "off", "inputmode": modes.get(knob.type, "text")}
        )
    return forms.CharField(required=False, label=KNOB_LABELS[name], help_text=hint, widget=widget)


def bounds_words(knob: Knob) -> str:
    """Return the allowed values as a short text, which is empty for choices."""
    if knob.type in ("number", "count"):
        return f"{'whole, ' if knob.type == 'count' else ''}{_number_words(knob.low)} to {_number_words(knob.high)}"
    if knob.type in ("words", "scopes"):
        return f"{'paths' if knob.type == 'scopes' else 'words'} separated by commas; a single comma for an empty list"
    return ""


def _number_words(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:g}"


def held_words(inherited: Mapping[str, Any]) -> str:
    """Return the value that applies while a field is empty, as text."""
    value = number_words(inherited["value"])
    return CHOICE_WORDS.get(value, value)


def source_words(source: Mapping[str, Any]) -> str:
    """Return the source of a value as text."""
    if "raised_from" in source:
        return f"raised from {source['raised_from']:g} to the next threshold"
    if source.get("preset"):
        return f"preset {source['preset']}, {source['from']}"
    return {DEFAULT: "default", ENVIRONMENT: "environment"}.get(source["from"], f"from {source['from']}")
