"""Prepares the database before MemState serves it: migrates it, and on a first start creates the administrator and the
keys. `manage.py up` runs `python -m memstate_site.prepare`, which may run on several hosts at once."""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from pathlib import Path
from typing import Any

import django
import psycopg

from memstate_site.env import SettingError, envbool, envsecret, envstr
from memstate_site.folder import data_folder_ensure, private_file_read, private_file_replace
from memstate_site.listening import shown_address

CREDENTIALS_FILE = "credentials.json"
ADMINISTRATOR = "admin"
# An arbitrary number, different from that of any other advisory lock.
PREPARE_LOCK = 0x4D656D5374
DATABASE_WAIT_SECONDS = 30.0
# A shorter key is accepted with a warning.
SHORT_KEY = 16


def prepare() -> None:
    """Migrate the database and make sure that an account exists. Stores other than ``main`` that cannot be migrated do
    not prevent the start."""
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    from memory.jobs.tasks import schedules_ensure
    from memory.stores.current import MAIN
    from memory.stores.migrate import StoresNotMigrated, stores_unfinished
    from memstate_site.staticfiles import release_make

    release_make()
    # A separate connection, without time limits.
    with _connect() as locked:
        locked.execute("SELECT pg_advisory_lock(%s)", [PREPARE_LOCK])
        embedder_must_fit()
        words_must_be_known()
        executor = MigrationExecutor(connection)
        # This check comes first, because the command takes a second and most starts have nothing to migrate.
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if missing or stores_unfinished():
            print(f"Migrating the database ({len(missing)} migrations).", flush=True)
            try:
                call_command("migrate", verbosity=0, interactive=False)
            except StoresNotMigrated as problem:
                if MAIN in problem.failed:
                    raise SettingError(str(problem)) from problem
                print(problem, flush=True)
        schedules_ensure()
        credentials_ensure(data_folder_ensure() / CREDENTIALS_FILE)


def embedder_must_fit() -> None:
    """Refuse to start if the embedder's vectors do not have the length of the column, because requests would fail."""
    from django.core.exceptions import ImproperlyConfigured

    from memory.embedding import EmbeddingFailed, WrongDimension, embedder_get
    from memory.health import vector_column_dimension

    try:
        embedder = embedder_get()
        # The length of an endpoint's vectors is known only from a reply.
        embedder.embed_query("Is anybody there?")
    except (ImproperlyConfigured, WrongDimension) as problem:
        raise SettingError(str(problem)) from problem
    except EmbeddingFailed as problem:
        # The endpoint may recover. Until then, topics are found by words, and ingest with ?defer=1 works.
        print(f"{problem.sentence} MemState starts without it.", flush=True)
    held = vector_column_dimension()
    if held is not None and held != embedder.dimension:
        raise SettingError(
            f"The store holds vectors of {held} numbers, but {embedder.model_name} makes vectors of "
            f"{embedder.dimension}. Set MEMSTATE_EMBEDDING_DIMENSION and the embedder back to what they were, or move "
            "the store with `python manage.py reembed`."
        )


def words_must_be_known() -> None:
    """Refuse to start with a text search configuration that the database does not have."""
    from django.conf import settings
    from django.db import ProgrammingError, connection

    name = settings.MEMSTATE_TEXT_SEARCH_CONFIG
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s::regconfig", [name])
    except ProgrammingError as problem:
        raise SettingError(
            f"MEMSTATE_TEXT_SEARCH_CONFIG is {name!r}, which PostgreSQL does not know; english, german and simple are "
            "examples."
        ) from problem


def credentials_ensure(path: Path) -> None:
    """Create the administrator and the first two keys, and show generated secrets once. Generated secrets are saved
    before they become valid, so an interrupted start loses nothing."""
    from django.contrib.auth.models import User

    from memory.access.keys import key_ensure, secret_generate

    given_password = envsecret("MEMSTATE_ADMIN_PASSWORD", minimum_length=8)
    given_keys = {"agent": envsecret("MEMSTATE_API_KEY"), "operator": envsecret("MEMSTATE_ADMIN_KEY")}
    if given_keys["agent"] is not None and given_keys["agent"] == given_keys["operator"]:
        raise SettingError(
            "MEMSTATE_API_KEY and MEMSTATE_ADMIN_KEY are the same. Use different keys: a key has only one role."
        )
    for role, given in given_keys.items():
        if given is not None and len(given) < SHORT_KEY:
            print(f"The given {role} key has only {len(given)} characters and can be guessed. Use a longer one.")
    kept: dict[str, str] = json.loads(private_file_read(path) or "{}")
    first_here = not kept
    first_anywhere = not User.objects.filter(is_superuser=True).exists()

    made: dict[str, str] = {}
    if first_anywhere or not first_here:
        if given_password is None and "admin_password" not in kept and first_anywhere:
            made["admin_password"] = secrets.token_urlsafe(15)
        for role, given in given_keys.items():
            if given is None and f"{role}_key" not in kept and first_anywhere:
                made[f"{role}_key"] = secret_generate()
    if made or first_here:
        kept = {"administrator": ADMINISTRATOR, **kept, **made}
        _secrets_save(path, kept)

    if first_anywhere:
        User.objects.create_superuser(ADMINISTRATOR, password=given_password or kept["admin_password"])
        _password_note(path, kept, given_password)
        if "admin_password" in kept:
            kept["admin_password_mark"] = _keyed_hash(_administrator_hash() or "")
            _secrets_save(path, kept)
    elif given_password is not None:
        _administrator_accept(path, kept, given_password)
    for role, given in given_keys.items():
        secret = given or kept.get(f"{role}_key")
        if secret is not None:
            key_ensure(name=f"first {role} key", role=role, secret=secret)
    _invalid_remove(path, kept)

    if made:
        _show_once(path, made)
    elif first_anywhere:
        print(f"MemState is set up with the secrets it was given. The administrator's name is {ADMINISTRATOR}.")
    elif any(name in kept for name in ("admin_password", "agent_key", "operator_key")):
        print(f"The secrets of the first start are in {path}.")
    sys.stdout.flush()


def _show_once(path: Path, made: dict[str, str]) -> None:
    from django.conf import settings

    console = shown_address(settings.MEMSTATE_API_HOST, settings.MEMSTATE_API_PORT) + "/"
    labels = {"admin_password": "Password", "agent_key": "Agent key", "operator_key": "Operator key"}
    lines = [("Console", console), ("Administrator", ADMINISTRATOR)]
    lines += [(label, made[name]) for name, label in labels.items() if name in made]
    if not envbool("MEMSTATE_SHOW_SECRETS", sys.stdout.isatty()):
        # Secrets are shown only on a terminal, because a log is kept and others may read it.
        print(f"\nMemState is set up at {console} The administrator's password and the first keys are in")
        print(f"{path}\n", flush=True)
        return
    print("\nMemState is set up. What follows is shown this once and kept, for this account only, in")
    print(f"{path}\n")
    for label, value in lines:
        print(f"  {label:<15}{value}")
    print(flush=True)


def _secrets_save(path: Path, kept: dict[str, str]) -> None:
    private_file_replace(path, json.dumps(kept, indent=2))


def _administrator_accept(path: Path, kept: dict[str, str], password: str) -> None:
    """Set the given password if it is new. A restart does not overwrite a password that was changed in the console."""
    from django.contrib.auth.models import User

    if kept.get("given_password_mark") == _keyed_hash(password):
        return
    administrator = User.objects.filter(username=ADMINISTRATOR).first()
    if administrator is not None and not administrator.check_password(password):
        administrator.set_password(password)
        administrator.save(update_fields=["password"])
    _password_note(path, kept, password)


def _password_note(path: Path, kept: dict[str, str], given: str | None) -> None:
    """Store a hash of the given password, so that the next start recognises it."""
    if given is None:
        return
    kept["given_password_mark"] = _keyed_hash(given)
    # The generated password is no longer valid, so it is removed.
    kept.pop("admin_password", None)
    _secrets_save(path, kept)


def _administrator_hash() -> str | None:
    from django.contrib.auth.models import User

    return User.objects.filter(username=ADMINISTRATOR).values_list("password", flat=True).first()


def _invalid_remove(path: Path, kept: dict[str, str]) -> None:
    """Remove the generated password if it was changed, and generated keys that were revoked."""
    from django.contrib.auth.hashers import check_password

    from memory.access.keys import secret_hash
    from memory.models import ApiKey

    invalid = []
    present = _administrator_hash() or ""
    # Keyed hashes are compared first, because checking the password takes most of a second.
    marked = kept.get("admin_password_mark") == _keyed_hash(present)
    if "admin_password" in kept and not marked and not check_password(kept["admin_password"], present):
        invalid += ["admin_password", "admin_password_mark"]
    for name in ("agent_key", "operator_key"):
        revoked = ApiKey.objects.filter(revoked_at__isnull=False)
        if name in kept and revoked.filter(secret_hash=secret_hash(kept[name])).exists():
            invalid.append(name)
    if invalid:
        for name in invalid:
            kept.pop(name, None)
        _secrets_save(path, kept)


def _keyed_hash(password: str) -> str:
    from django.utils.crypto import salted_hmac

    return salted_hmac("memstate.given-password", password, algorithm="sha256").hexdigest()


def _connect() -> psycopg.Connection[Any]:
    address = envstr("DATABASE_URL")
    if not address:
        raise SettingError("DATABASE_URL is not set; `manage.py up` sets it for the embedded database.")
    deadline = time.monotonic() + DATABASE_WAIT_SECONDS
    reported = False
    while True:
        try:
            return psycopg.connect(address, autocommit=True, connect_timeout=5)
        except psycopg.OperationalError as problem:
            if time.monotonic() > deadline:
                cause = str(problem).strip().splitlines()[-1].strip()
                raise SettingError(f"The database in DATABASE_URL cannot be reached: {cause}") from problem
            if not reported:
                print("The database does not answer yet; waiting for it.", flush=True)
                reported = True
            time.sleep(0.5)


def main() -> int:
    """Prepare the database, and return an exit status: 2 after a ``SettingError``, whose message is printed."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memstate_site.settings")
    # Migrations have no time limit, but their waits for locks are limited, so that they do not block a running store.
    os.environ.setdefault("MEMSTATE_STATEMENT_TIMEOUT_MS", "0")
    try:
        django.setup()
        prepare()
    except SettingError as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
