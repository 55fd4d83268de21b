"""The seed of tests with random choices: the same in each run, another one with MEMSTATE_TEST_SEED."""

import os

SEED = int(os.environ.get("MEMSTATE_TEST_SEED", "1"))
