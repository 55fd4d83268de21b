#!/usr/bin/env python
"""Runs MemState's commands; `python manage.py up` starts everything."""

import sys

from memstate_site.command import command_run

if __name__ == "__main__":
    sys.exit(command_run(sys.argv))
