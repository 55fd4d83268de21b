"""From the hash of a key to its store."""

from memory.core.errors import MemoryProblem
from memory.core.problem_codes import ProblemCode
from memory.stores.current import store_current
from memory.stores.migrate import version_current
from memory.stores.models import KeyStore

# A key never changes its store, and a store never goes back to older tables, so an entry stays true until the store is
# dropped.
_MOST_KNOWN = 10_000
_known: dict[str, str] = {}


class StoreBehind(MemoryProblem):
    """The tables of the store are not those of this release (503)."""

    code = ProblemCode.STORE_BEHIND


def key_note(*secret_hashes: str) -> None:
    """Record that keys belong to the current store, in the transaction that creates them. One query."""
    name = store_current()
    KeyStore.objects.bulk_create(KeyStore(secret_hash=each, store_id=name) for each in secret_hashes)
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
        raise StoreBehind("This store is being brought to a new release. Try again in a minute.")
    _remember(secret_hash, found.store_id)
    return found.store_id


def key_forget(secret_hash: str) -> None:
    """Look the store of a key up again the next time, because its store is gone."""
    _known.pop(secret_hash, None)


def _remember(secret_hash: str, name: str) -> None:
    while len(_known) >= _MOST_KNOWN:
        _known.pop(next(iter(_known)), None)
    _known[secret_hash] = name
