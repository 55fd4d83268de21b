"""The header of Tuning, the same on all its tabs: the scope, and the preset, version and mode that apply there."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.urls import reverse

from memory.console.fields import ScopeField, SuggestInput
from memory.core.scopes import scope_within
from memory.policy.snapshot import Policies


class ScopeForm(forms.Form):
    """The chooser of a scope."""

    scope = ScopeField(required=False, widget=SuggestInput("scope", {"size": 24}))


def address(name: str, scope: str, **more: Any) -> str:
    """Return the URL of a page about the policy of ``scope``."""
    return f"{reverse(f'console:{name}')}?{urlencode({'scope': scope, **more}, doseq=True)}"


def tuning_head(tab: str, scope: str, policies: Policies) -> dict[str, Any]:
    """Return the header of the tab ``tab`` for ``scope``, a canonical path. No query.

    ``number`` is the newest version at this scope, 0 if there is none. ``at`` is the nearest scope whose policy sets
    something, and ``at_version`` is its version, 0 for the defaults. ``preset_from`` and ``mode_from`` are the sources
    of ``preset`` and ``mode``.
    """
    effective = policies.effective(scope)
    above = sorted((path for path in policies.policies if scope_within(scope, path)), key=len, reverse=True)
    with_preset = next((path for path in above if policies.policies[path].preset), "")
    return {
        "tab": f"console:{tab}",
        "scope": scope,
        "form": ScopeForm(initial={"scope": scope}),
        "number": policies.numbers.get(scope, 0),
        "is_set": scope in policies.policies,
        "at": effective.at,
        "at_version": effective.version,
        "preset": policies.policies[with_preset].preset if with_preset else "",
        "preset_from": with_preset,
        "mode": effective.knobs.mode,
        "mode_from": effective.sources["mode"].source,
        "back_to": max(0, policies.numbers.get(scope, 0) - 1),
    }
