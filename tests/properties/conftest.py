"""How thoroughly properties are checked: MEMSTATE_TEST_EXAMPLES multiplies the number of generated cases.

`.ci/run` has all of them, `make test` half: what is wrong with most of them is found by half as well, the rest a run
later.
"""

import os

from hypothesis import HealthCheck, Phase, settings

TIMES = float(os.environ.get("MEMSTATE_TEST_EXAMPLES", "0.5"))

# Every test of a run must end, so a failing case is only made smaller when somebody looks into it.
_PHASES = list(Phase) if TIMES > 1 else [Phase.explicit, Phase.reuse, Phase.generate]

settings.register_profile(
    "memstate",
    deadline=None,
    phases=_PHASES,
    print_blob=True,
    # The database is emptied by each case itself.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("memstate")


def examples(number: int) -> settings:
    """Return settings for a test that generates ``number`` cases in `.ci/run`."""
    return settings(max_examples=max(1, int(number * TIMES)))
