"""The process of the embedded PostgreSQL server of a data folder."""

from pathlib import Path

import psutil

from memstate_site.postgres.pidfile import traces


def server_pid(folder: Path) -> int | None:
    """Return the id of the process that serves a data folder now; None if there is none."""
    path = folder / "postgres"
    try:
        return traces(path).running if path.exists() else None
    except psutil.Error:
        return None
