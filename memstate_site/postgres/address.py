"""The connection address of the embedded server of a data folder."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from memstate_site.folder import private_file_read

DATABASE = "memstate"
ROLE = "memstate"

# Files in the data folder. The first contains the path of the socket's folder, whose name is random.
SOCKET_FOLDER_FILE = "socket-folder"
PASSWORD_FILE = "database-password"  # noqa: S105 - the name of a file, not a password


def socket_address(socket_folder: Path, password: str, *, role: str = ROLE, database: str = DATABASE) -> str:
    """Return the connection address of a server whose socket is in `socket_folder`."""
    return f"postgresql://{role}:{quote(password, safe='')}@/{database}?host={quote(str(socket_folder), safe='')}"


def embedded_address(folder: Path) -> str:
    """Return the connection address of the server of the data folder, whether or not it is running."""
    socket_folder = private_file_read(folder / SOCKET_FOLDER_FILE)
    password = private_file_read(folder / PASSWORD_FILE)
    if socket_folder is None or password is None:
        # No server was ever started in this folder. Connections to this address fail, and commands report this.
        return socket_address(folder, "")
    return socket_address(Path(socket_folder), password)
