#!/usr/bin/env python
"""Runs MemState's commands; `python manage.py up` starts everything."""

from __future__ import annotations

import os
import sys

from memstate_site.env import SettingError


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memstate_site.settings")
    try:
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
    except SettingError as problem:
        # The message is a sentence for the person at the terminal; a traceback would only hide it.
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
