"""From the hash of a key to its store."""

from django.db import connection

from memory.core.errors import Conflict, MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.stores.current import store_current
from memory.stores.migrate import version_current
from memory.stores.models import KeyStore

# A key never changes its store, and a store never goes back to older tables, so an entry stays true until the store is
# dropped.
_MOST_KNOWN = 10_000
# A row that a lost key of this store has left is no obstacle.
_NOTE_SQL = """
INSERT INTO stores_keystore (secret_hash, store_id) SELECT unnest(%s::text[]), %s
ON CONFLICT (secret_hash) DO UPDATE SET store_id = excluded.store_id WHERE stores_keystore.store_id = excluded.store_id
"""
_known: dict[str, str] = {}


class StoreBehind(MemoryProblem):
    """The tables of the store are not those of this release (503)."""

    code = ProblemCode.STORE_BEHIND


def key_note(*secret_hashes: str) -> None:
    """Record that keys belong to the current store, in the transaction that creates them. One query.

    Raises ``Conflict`` if one belongs to another store.
    """
    name = store_current()
    with connection.cursor() as cursor:
        cursor.execute(_NOTE_SQL, [list(secret_hashes), name])
        if cursor.rowcount < len(secret_hashes):
            raise Conflict("Another store has this key.", code=ProblemCode.KEY_ALREADY_MADE)
    for each in secret_hashes:
        _remember(each, name)


def key_store(secret_hash: str) -> str | None:
    """Return the store of a key, None for an unknown key. No query for a key that this process knows, else one.

    Raises ``StoreBehind``.
    """
    if (name := _known.get(secret_hash)) is not None:
        return name
    found = KeyStore.objects.select_related("store").filter(pk=secret_hash).first()
    if found is None:
        return None
    if found.store.version != version_current():
        raise StoreBehind("This store is being migrated to a new release. Try again in a minute.")
    _remember(secret_hash, found.store_id)
    return found.store_id


def key_forget(secret_hash: str) -> None:
    """Look the store of a key up again the next time, because its store is gone."""
    _known.pop(secret_hash, None)


def _remember(secret_hash: str, name: str) -> None:
    while len(_known) >= _MOST_KNOWN:
        _known.pop(next(iter(_known)), None)
    _known[secret_hash] = name
