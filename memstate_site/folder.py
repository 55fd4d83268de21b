"""The data folder and the files in it that only its owner may read."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from platformdirs import user_data_path

from memstate_site.env import SettingError, envpath

# The errors for a full disk and for an exceeded quota.
FULL = (errno.ENOSPC, errno.EDQUOT)
# The folder of the packages: the checkout, or where pip has installed them.
CHECKOUT = Path(__file__).resolve().parent.parent
INSTALLED = not (CHECKOUT / "manage.py").is_file()
# The folder of the templates and static files.
RESOURCES = Path(__file__).resolve().parent if INSTALLED else CHECKOUT


def data_folder() -> Path:
    """Return the folder with all data of this installation: `MEMSTATE_DATA_DIR`, else `.memstate` in the checkout, or
    the user's folder for data if the package is installed."""
    return envpath("MEMSTATE_DATA_DIR", user_data_path("memstate") if INSTALLED else CHECKOUT / ".memstate")


def data_folder_ensure() -> Path:
    """Return the data folder, and create it if it is missing. Other accounts cannot enter a new folder. If root creates
    it, other accounts can enter it but not list it, because its database runs under another account."""
    folder = data_folder()
    try:
        folder.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True)
    except FileExistsError:
        if not folder.is_dir():
            raise SettingError(f"The data folder {folder} is not a folder.") from None
    except OSError as problem:
        raise SettingError(
            f"The data folder {folder} cannot be made: {problem.strerror}. "
            f"Set MEMSTATE_DATA_DIR to a folder that this account may write to."
        ) from problem
    return folder


def secret_ensure(path: Path) -> str:
    """Return the secret in the file, and generate it if the file does not exist. If several processes generate it at
    once, all return the one that was written first."""
    existing = private_file_read(path)
    if existing is not None:
        return existing
    value = secrets.token_urlsafe(48)
    if private_file_create(path, value):
        return value
    made_by_another = private_file_read(path)
    assert made_by_another is not None
    return made_by_another


def private_file_read(path: Path) -> str | None:
    """Return the content of a private file, or None if it does not exist."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        raise SettingError(
            f"{path} cannot be read by this account. Run as the account that owns the data folder, "
            f"or set MEMSTATE_DATA_DIR to a folder of your own."
        ) from None


def private_file_create(path: Path, text: str) -> bool:
    """Write a new file that only its owner can read. Return False if the file exists already."""
    temporary = _private_temporary(path, text)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    return True


def private_file_replace(path: Path, text: str) -> None:
    """Write a file that only its owner can read, replacing an existing file atomically."""
    _private_temporary(path, text).replace(path)


def _private_temporary(path: Path, text: str) -> Path:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        # The mode is set at creation, so that other accounts can never open the file.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        temporary.unlink(missing_ok=True)
        if problem.errno in FULL:
            raise SettingError(
                f"The disk that holds {path.parent} is full. Make room there and start again."
            ) from problem
        raise SettingError(f"{path} cannot be written: {problem.strerror}.") from problem
    return temporary
