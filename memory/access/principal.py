"""The principal, which is the caller of one request, and all checks of permissions."""

from dataclasses import dataclass

from memory.core.errors import NotAllowed, NotVisible
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT, scope_normalize, scope_within

ROLES = ("reader", "agent", "operator")


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request. ``actor`` is the label in the journals, ``identity`` is stable and unique.
    ``may_forget`` is true for an agent that may release topics (``memory.erasure.agent_release``)."""

    identity: str
    actor: str
    role: str
    scope: str = ROOT
    may_forget: bool = False

    def covers(self, role: str) -> bool:
        """Return whether the caller has the rights of ``role``."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def require(self, role: str, *, other: str = "") -> None:
        """Raise ``NotAllowed`` unless the caller's role covers ``role``. ``other`` names another kind of key that is
        sufficient."""
        if not self.covers(role):
            needed = f"{_with_article(role)} key{other and f' or {other}'}"
            raise NotAllowed(
                f"This needs {needed}; the key in use is {_with_article(self.role)} key.", code=ProblemCode.ROLE_TOO_LOW
            )

    def scope_chosen(self, path: str | None) -> str:
        """Return the canonical form of the scope ``path``, or the scope of the caller if ``path`` is None.

        Raises ``NotVisible`` if the scope is outside that of the caller, ``ValueRefused`` if it is malformed.
        """
        if path is None:
            return self.scope
        chosen = scope_normalize(path)
        if not scope_within(chosen, self.scope):
            raise NotVisible(f"Scope {chosen} does not exist.")
        return chosen

    def sees(self, scope: str) -> bool:
        """Return whether a topic in ``scope`` is visible to the caller."""
        return scope_within(scope, self.scope)


def _with_article(role: str) -> str:
    return f"{'an' if role[0] in 'aeiou' else 'a'} {role}"


SYSTEM = Principal(identity="system", actor="system", role="operator")
# The caller of commands.
TERMINAL = Principal(identity="terminal", actor="terminal", role="operator")
