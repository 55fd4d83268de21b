"""``python -m memstate_site COMMAND``: the commands of ``manage.py``, also where the package is installed."""

import sys

from memstate_site.command import command_run

if __name__ == "__main__":
    sys.exit(command_run(sys.argv))
