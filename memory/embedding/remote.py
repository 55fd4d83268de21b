"""The embedder for endpoints with the OpenAI embeddings protocol: OpenAI, Ollama, vLLM, Groq and others."""

import random
import time
from collections.abc import Sequence

import httpx2
import numpy as np
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory.core.endpoints import retry_after_seconds
from memory.embedding.base import EmbeddingFailed, Vectors, WrongDimension, rows_normalized
from memory.embedding.status import OPENAI_URL

TEXTS_PER_REQUEST = 128
TIMEOUT_SECONDS = 30.0
RETRIES = 3
# The wait before the first retry. The wait doubles with each retry, up to the maximum.
BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.5, 8.0
# A Retry-After of more seconds is ignored.
MAX_WAIT_SECONDS = 60.0
# Client errors (4xx) after which a retry may succeed.
_RETRIED = (408, 409, 429)


class RemoteEmbedder:
    """Requests vectors of the model ``MEMSTATE_EMBEDDING_MODEL`` from ``MEMSTATE_OPENAI_BASE_URL``."""

    # Measured for text-embedding-3-small. Other models have a similar or higher value.
    unrelated = 0.2

    def __init__(self) -> None:
        if not settings.MEMSTATE_EMBEDDING_MODEL:
            raise ImproperlyConfigured("MEMSTATE_EMBEDDER is openai, so MEMSTATE_EMBEDDING_MODEL must name a model.")
        self.dimension: int = settings.MEMSTATE_EMBEDDING_DIMENSION
        self.model_name: str = settings.MEMSTATE_EMBEDDING_MODEL
        self._client = httpx2.Client(
            # OPENAI_BASE_URL and similar variables are not read: texts go only to the address configured for MemState.
            base_url=settings.MEMSTATE_OPENAI_BASE_URL or OPENAI_URL,
            # Local endpoints accept any key, and some require one.
            headers={"Authorization": f"Bearer {settings.MEMSTATE_OPENAI_API_KEY or 'none'}", "User-Agent": "memstate"},
            timeout=TIMEOUT_SECONDS,
            follow_redirects=False,
            trust_env=False,
        )

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors. Sends ``TEXTS_PER_REQUEST`` texts per request."""
        parts = [self._request(texts[at : at + TEXTS_PER_REQUEST]) for at in range(0, len(texts), TEXTS_PER_REQUEST)]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a query. These models treat queries like passages."""
        vector: Vectors = self._request([text])[0]
        return vector

    def _request(self, texts: Sequence[str]) -> Vectors:
        response = self._send(texts)
        try:
            found = sorted(response.json()["data"], key=lambda row: row["index"])
            rows = np.array([row["embedding"] for row in found], dtype=np.float32)
        except (ValueError, LookupError, TypeError, RecursionError) as problem:
            raise EmbeddingFailed(f"The embedding endpoint did not answer as expected: {problem}") from problem
        if rows.shape != (len(texts), self.dimension):
            raise WrongDimension(
                f"The model {self.model_name} returned vectors of shape {rows.shape} instead of "
                f"{(len(texts), self.dimension)}. Check MEMSTATE_EMBEDDING_DIMENSION."
            )
        return rows_normalized(rows)

    def _send(self, texts: Sequence[str]) -> httpx2.Response:
        """Return the reply of the endpoint. Retries after temporary errors."""
        # Endpoints refuse empty texts, so a space is sent instead.
        body = {"model": self.model_name, "input": [text or " " for text in texts]}
        for retry in range(RETRIES + 1):
            wait = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2.0**retry) * (1 - random.random() / 4)  # noqa: S311
            try:
                response = self._client.post("embeddings", json=body)
            except httpx2.RequestError as problem:
                why = str(problem) or type(problem).__name__
            else:
                if response.is_success:
                    return response
                status, why = response.status_code, f"status {response.status_code}, {response.text[:500]}"
                if status < 500 and status not in _RETRIED:
                    break
                asked = retry_after_seconds(response.headers.get("retry-after", ""))
                wait = asked if asked and asked <= MAX_WAIT_SECONDS else wait
            if retry < RETRIES:
                time.sleep(wait)
        raise EmbeddingFailed(f"The embedding endpoint did not answer as expected: {why}")
