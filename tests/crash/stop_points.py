"""Kills a process at a chosen statement, so that a test of kills does not depend on the speed of the machine."""

import os
import signal
from collections.abc import Callable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper


def kill_at_statement(connection: BaseDatabaseWrapper, number: int) -> None:
    """Let this process kill itself before its statement of this number; 0 is the first."""
    left = number

    def count(execute: Callable[..., Any], *statement: Any) -> Any:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return execute(*statement)

    connection.execute_wrappers.append(count)
