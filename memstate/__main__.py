"""``python -m memstate``: the command ``memstate``."""

import sys

from memstate.command import main

sys.exit(main())
