"""A draft of a policy as a form: one field per value that may be set, a preset, and rules as JSON.

The form only collects texts. What they mean, and whether they hold together, is asked of the room of policies, whose
sentence stands at the field it names. All of it can be written into an address: a draft can be kept, sent and reloaded.
"""

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms

from memory.console.fields import form_error
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

# Beside the values themselves, what a draft consists of in an address.
MEMBERS = ("preset", "rules", "base_version")
MOST_RULES_TEXT = 100_000
MOST_DEPTH = 32
# Choices in other words than their own.
CHOICE_WORDS = {
    "auto": "automatic",
    "review": "needs approval",
    "true": "yes",
    "false": "no",
    "half_life": "half-life",
    "active_forgetting": "active forgetting",
}
_FIRST_WORD = re.compile(r"\w+")
_CODES_OF_RULES = frozenset(
    {
        ProblemCode.INVALID_RULE,
        ProblemCode.TOO_MANY_RULES,
        ProblemCode.RULE_NOT_STABLE,
        ProblemCode.UNKNOWN_RULE_PRESET,
        ProblemCode.INVALID_CONDITION,
        ProblemCode.INVALID_CONDITION_VALUE,
        ProblemCode.UNKNOWN_CONDITION_FIELD,
        ProblemCode.UNKNOWN_OPERATOR,
        ProblemCode.INVALID_PATTERN,
        ProblemCode.PATTERN_TOO_SLOW,
    }
)

DraftContent = tuple[str, dict[str, Any], list[Any] | None]


class DraftForm(forms.Form):
    """A draft of the policy of one scope, beside the snapshot it starts from. No query.

    ``data`` is an address or what was sent. One that has no ``base_version`` of its own says only what differs from
    what is set, so that a link can name a single value. Valid forms have ``drafted``, the snapshot under the draft.
    With ``rules_shown``, a draft that begins shows the rules that are set, instead of leaving them as they are.
    """

    # ``memory.policy`` checks the choices, so they are plain texts here.
    preset = forms.CharField(
        required=False, label="Preset", widget=forms.Select(choices=[("", "None"), *((name, name) for name in PRESETS)])
    )
    rules = forms.CharField(
        required=False,
        max_length=MOST_RULES_TEXT,
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
        """Return what holds, and where from, for each value that is left empty: the preset of the draft has a say."""
        preset, strategy = said.get("preset", ""), said.get("strategy", "")
        under = SetPolicy(self.scope, 0, preset if preset in PRESETS else "")
        effective = effective_as_json(self.policies.with_policy(under).effective(self.scope))
        if strategy in KNOBS["strategy"].choices:
            # Thresholds that are not set are those of the strategy.
            chosen = dataclasses.replace(under, values={"strategy": strategy})
            of_strategy = effective_as_json(self.policies.with_policy(chosen).effective(self.scope))
            return {**of_strategy, "strategy": effective["strategy"]}
        return effective

    def clean(self) -> dict[str, Any]:
        """Check the draft as a save would; each error is shown at its field."""
        said: dict[str, Any] = self.cleaned_data
        for name in KNOBS:
            try:
                values_parse({name: _typed(name, said.get(name, ""))})
            except MemoryProblem as problem:
                self.add_error(name, form_error(problem))
        try:
            said["rules"] = rules_read(said.get("rules", ""))
        except ValueRefused as problem:
            self.add_error("rules", form_error(problem))
        if not self.errors:
            try:
                preset, values, rules = draft_of(self)
                self.drafted = policies_drafted(self.policies, self.scope, preset=preset, values=values, rules=rules)
            except MemoryProblem as problem:
                if problem.code == ProblemCode.POLICY_VALUES_CONTRADICT:
                    self._thresholds_refuse(said)
                else:
                    self.add_error(field_named(problem), form_error(problem))
        return said

    def _thresholds_refuse(self, said: Mapping[str, Any]) -> None:
        """Show thresholds that contradict each other with their labels, at the one that was changed, else the upper."""
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
                code=ProblemCode.POLICY_VALUES_CONTRADICT,
            ),
        )

    @property
    def groups(self) -> Iterator[dict[str, Any]]:
        """The groups of values for the template: a title, the fields, how many are set, and whether to begin open.

        Each field has the source of its value while it is empty, and whether the policy of this scope sets it.
        """
        in_force = effective_as_json(self.policies.effective(self.scope))
        for group, title in GROUPS.items():
            names = [name for name, knob in KNOBS.items() if knob.group == group]
            lines = [
                {
                    "field": self[name],
                    "source": source_words(self.inherited[name]),
                    "here": in_force[name]["from"] == self.scope and not in_force[name].get("preset"),
                }
                for name in names
            ]
            wrong = any(self[name].errors for name in names)
            count = sum(bool(self[name].value()) for name in names)
            yield {"title": title, "lines": lines, "set": count, "open": wrong or count or group == "ladder"}

    @property
    def thresholds(self) -> list[dict[str, Any]]:
        """The three thresholds of the ladder, from the highest, each with its source while it is empty."""
        names = ("theta_summary", "theta_detach", "forget_salience_threshold")
        return [{"field": self[name], "source": source_words(self.inherited[name])} for name in names]

    @property
    def held(self) -> dict[str, dict[str, str]]:
        """For each value that is typed: what holds while its field is empty, and the source of that."""
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
    """Return what a form without errors of its own says: preset, values and rules, as ``policy_save`` takes them."""
    said = form.cleaned_data
    values = {name: _typed(name, said[name]) for name in KNOBS if said.get(name, "")}
    return said.get("preset", ""), values, said.get("rules")


def draft_texts(draft: SetPolicy, *, rules: bool = False) -> dict[str, str]:
    """Return a policy as the texts of the form's fields, without those that are left empty. ``rules`` go along only
    if asked for: without them, those that are set stay."""
    texts = {name: value_text(value) for name, value in draft.values.items()}
    if draft.preset:
        texts["preset"] = draft.preset
    if rules:
        texts["rules"] = json.dumps([rule.as_json() for rule in draft.rules], indent=2, ensure_ascii=False)
    return texts


def draft_query(form: DraftForm, *, prefix: str = "") -> list[tuple[str, str]]:
    """Return the members of an address that say what ``form`` says; ``prefix`` stands before their names."""
    lead = f"{prefix}-" if prefix else ""
    members = ((name, form[name].value()) for name in (*MEMBERS, *KNOBS))
    return [(lead + name, str(value)) for name, value in members if value not in (None, "")]


def preset_taken(form: DraftForm) -> dict[str, str]:
    """Return the texts of ``form`` after its preset has been taken: what belongs to the design comes from it, all else
    stays as it is."""
    preset = form["preset"].value()
    design = PRESETS[preset].values if preset in PRESETS else {}
    return {name: text for name, text in draft_query(form) if name not in design}


def rules_read(text: str) -> list[Any] | None:
    """Return rules typed as JSON, None if empty. Raises ``ValueRefused``."""
    if not text.strip():
        return None
    try:
        found = json_guarded(text.encode(errors="replace"), max_depth=MOST_DEPTH)
    except MemoryProblem as problem:
        raise ValueRefused(problem.sentence.replace("The body", "What is written here"), code=problem.code) from problem
    if not isinstance(found, list):
        raise ValueRefused("Rules must be a list.", code=ProblemCode.INVALID_RULE)
    return found


def field_named(problem: MemoryProblem) -> str | None:
    """Return the field that a refusal is about, None if it speaks of the whole.

    A refusal that is about a value of a policy begins with the name of the value.
    """
    first = _FIRST_WORD.match(problem.sentence)
    word = first[0] if first else ""
    if word in KNOBS:
        return word
    if problem.code in _CODES_OF_RULES:
        return "rules"
    return "preset" if problem.code == ProblemCode.UNKNOWN_PRESET else None


def value_text(value: KnobValue) -> str:
    """Return a value as it is typed. Lists are parted by commas; a single comma is the empty list."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        plain = not any("," in word or word.startswith("[") for word in value)
        return (", ".join(value) or ",") if plain else json.dumps(value, ensure_ascii=False)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _typed(name: str, text: str) -> object:
    """Return a text as the room of policies takes it: nothing is inherited, a list may be written as JSON."""
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
        # Not a number field: what was typed wrongly stays there to be seen, beside the sentence that refuses it.
        modes = {"number": "decimal", "count": "numeric"}
        widget = forms.TextInput(
            attrs={"placeholder": held, "autocomplete": "off", "inputmode": modes.get(knob.type, "text")}
        )
    return forms.CharField(required=False, label=KNOB_LABELS[name], help_text=hint, widget=widget)


def bounds_words(knob: Knob) -> str:
    """Return the allowed values as a short text."""
    if knob.type in ("number", "count"):
        return f"{'whole, ' if knob.type == 'count' else ''}{_plain(knob.low)} to {_plain(knob.high)}"
    if knob.type in ("words", "scopes"):
        return f"{'paths' if knob.type == 'scopes' else 'words'} separated by commas; a single comma for an empty list"
    return ""


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:g}"


def held_words(inherited: Mapping[str, Any]) -> str:
    """Return the value that holds while a field is empty, as text."""
    value = number_words(inherited["value"])
    return CHOICE_WORDS.get(value, value)


def source_words(source: Mapping[str, Any]) -> str:
    """Return the source of a value as text."""
    if source.get("preset"):
        return f"preset {source['preset']}, {source['from']}"
    return {DEFAULT: "default", ENVIRONMENT: "environment"}.get(source["from"], f"from {source['from']}")
