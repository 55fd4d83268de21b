"""How generated cases are made, for all tests with Hypothesis.

MEMSTATE_TEST_EXAMPLES multiplies the number of cases of ``examples``. The cases are the same in each run, so that a run
fails only because of a change; with MEMSTATE_TEST_SEED, they are others.
"""

import os

from hypothesis import HealthCheck, Phase, settings

TIMES = float(os.environ.get("MEMSTATE_TEST_EXAMPLES", "0.5"))
_RANDOM = "MEMSTATE_TEST_SEED" in os.environ

settings.register_profile(
    "memstate",
    # A busy machine is slow, not wrong.
    deadline=None,
    derandomize=not _RANDOM,
    database=None,
    # A failing case is made smaller only where someone looks into it, because each run must end.
    phases=list(Phase) if TIMES > 1 else [Phase.explicit, Phase.generate],
    print_blob=True,
    # The database is emptied by each case itself.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("memstate")


def examples(number: int) -> settings:
    """Return settings for a test that generates ``number`` cases in `make test-all`."""
    return settings(max_examples=max(1, int(number * TIMES)))
