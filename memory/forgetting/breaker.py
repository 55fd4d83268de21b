"""The circuit breaker holds a run that would archive too many topics until an operator approves the run."""

from collections.abc import Callable, Mapping

from memory.forgetting.candidates import live_count
from memory.models import ForgetRun
from memory.policy.partition import PolicyPartition, partitions_of
from memory.policy.snapshot import Policies

# The circuit breaker never holds a run that archives or releases at most this many topics.
ALWAYS_ALLOWED = 50


def hold_reason(run: ForgetRun, policies: Policies, leaving: dict[str, int]) -> str:
    """Return why an operator must approve the run, or an empty text. ``leaving`` maps the path of a policy to the
    number of topics to archive or release. Unless the mode is ``review``, a total above ``ALWAYS_ALLOWED`` also sets
    ``run.active`` to the number of live topics."""
    if policies.knobs(run.scope).mode == "review":
        return f"The policy of {policies.node_of(run.scope)} requires a review of every run."

    def live(partition: PolicyPartition | None) -> int:
        if partition is not None:
            return live_count(partition.path, excluded=partition.excluded)
        run.active = live_count(run.scope)
        return run.active

    return breaker_reason(policies, run.scope, leaving, live=live)


def breaker_reason(
    policies: Policies, scope: str, leaving: Mapping[str, int], *, live: Callable[[PolicyPartition | None], int]
) -> str:
    """Return why the circuit breaker holds a run over ``scope``, or an empty text. ``live`` returns the number of live
    topics in a partition, or in the whole scope."""
    total = sum(leaving.values())
    if total <= ALWAYS_ALLOWED:
        return ""
    partitions = partitions_of(policies, scope, forgetting=False)
    active = live(None)
    share = policies.knobs(scope).max_archive_share
    if total > share * active:
        return _breaker_sentence(total, active, share)
    # Each policy is also checked alone, because a mistake in a small scope hardly changes the share of the whole run.
    for partition in partitions:
        count, share = leaving.get(partition.policy.at, 0), partition.policy.knobs.max_archive_share
        if len(partitions) == 1 or count <= ALWAYS_ALLOWED:
            continue
        active = live(partition)
        if count > share * active:
            return _breaker_sentence(count, active, share, where=f" under the policy of {partition.policy.at}")
    return ""


def _breaker_sentence(leaving: int, active: int, share: float, *, where: str = "") -> str:
    return (
        f"It would archive {leaving:,} of {active:,} live memories{where} ({leaving / active:.0%}), more than the "
        f"{share:.0%} that max_archive_share allows."
    )
