"""Finds the store of a key by the hash of the key."""

from typing import NamedTuple

from django.db import connection

from memory.core.errors import Conflict, MemoryProblem, NotVisible
from memory.core.problem_codes import ProblemCode
from memory.stores.current import store_choose, store_current
from memory.stores.models import KeyStore, Store
from memory.stores.versions import stores_known, version_current

# In this header, a request with a key of the installation names its store.
STORE_HEADER = "X-MemState-Store"

# A key never changes its store, so a cached entry stays valid until the store is dropped.
_MAX_KNOWN = 10_000
# An existing row for the same store is accepted, because its key may have been lost.
_NOTE_SQL = """
INSERT INTO stores_keystore (secret_hash, store_id, installation) SELECT unnest(%s::text[]), %s, %s
ON CONFLICT (secret_hash) DO UPDATE SET store_id = excluded.store_id WHERE stores_keystore.store_id = excluded.store_id
"""


class StoreBehind(MemoryProblem):
    """The tables of the store are not those of this release (503)."""

    code = ProblemCode.STORE_BEHIND


class StoreElsewhere(MemoryProblem):
    """Another cluster has the store (421)."""

    code = ProblemCode.STORE_ELSEWHERE


class Door(NamedTuple):
    """The store of a key, and whether the key may name another one (``installation``)."""

    store: str
    installation: bool


_known: dict[str, Door] = {}


def store_unknown(name: str) -> NotVisible:
    """Return the problem of a store that does not exist or that the caller may not use."""
    return NotVisible(f"There is no store {name}.")


def key_note(*secret_hashes: str, installation: bool = False) -> None:
    """Record that keys belong to the current store, in the transaction that creates them. One query. Raises
    ``Conflict`` if a key belongs to another store."""
    name = store_current()
    with connection.cursor() as cursor:
        cursor.execute(_NOTE_SQL, [list(secret_hashes), name, installation])
        if cursor.rowcount < len(secret_hashes):
            raise Conflict("Another store has this key.", code=ProblemCode.ALREADY_EXISTS)
    for each in secret_hashes:
        _remember(each, Door(name, installation))


def key_enter(secret_hash: str) -> Door | None:
    """Make the store of a key the current store, and return its ``Door``; None for an unknown key. One query, none if
    this process knows the key. Raises ``StoreBehind``, ``StoreElsewhere``."""
    door = _known.get(secret_hash)
    if door is None:
        found = KeyStore.objects.filter(pk=secret_hash).values_list("store_id", "installation").first()
        if found is None:
            return None
        door = Door(*found)
        _remember(secret_hash, door)
    if door.store in stores_known().behind:
        raise store_refusal(door.store)
    store_choose(door.store)
    return door


def store_enter(name: str) -> None:
    """Make the store that a request names the current store. One query. Raises ``NotVisible``, ``StoreBehind``,
    ``StoreElsewhere``."""
    version = Store.objects.filter(pk=name).values_list("version", flat=True).first()
    if version is None:
        raise store_unknown(name)
    if version != version_current():
        raise store_refusal(name)
    store_choose(name)


def keys_of_installation() -> set[str]:
    """Return the hashes of the keys of the installation. One query."""
    return set(KeyStore.objects.filter(installation=True).values_list("pk", flat=True))


def key_forget(secret_hash: str) -> None:
    """Forget the cached store of a key, because the store was dropped."""
    _known.pop(secret_hash, None)


def store_refusal(name: str) -> MemoryProblem:
    """Return the problem of a store that is on another cluster, or has tables of another release. One query."""
    cluster = Store.objects.filter(pk=name).values_list("cluster", flat=True).first()
    if cluster:
        return store_elsewhere(name, cluster)
    return StoreBehind("This store is being migrated to another release. Try again in a minute.")


def store_elsewhere(name: str, cluster: str) -> StoreElsewhere:
    """Return the problem of a store that is on another cluster."""
    return StoreElsewhere(f"The store {name} is on the cluster {cluster}. Send its requests there.")


def _remember(secret_hash: str, door: Door) -> None:
    while len(_known) >= _MAX_KNOWN:
        _known.pop(next(iter(_known)), None)
    _known[secret_hash] = door
