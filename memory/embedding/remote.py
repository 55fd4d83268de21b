"""Any endpoint that speaks the OpenAI embeddings protocol: OpenAI, Ollama, vLLM, Groq and others."""

from collections.abc import Sequence

import numpy as np
import openai
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory.embedding.base import EmbeddingFailed, Vectors, WrongDimension, rows_normalized
from memory.embedding.told import OPENAI_URL

TEXTS_PER_REQUEST = 128
TIMEOUT_SECONDS = 30.0
RETRIES = 3


class RemoteEmbedder:
    """Asks the endpoint of ``MEMSTATE_OPENAI_BASE_URL`` for the model ``MEMSTATE_EMBEDDING_MODEL``."""

    # Of text-embedding-3-small; other models are near it, or above.
    unrelated = 0.2

    def __init__(self) -> None:
        if not settings.MEMSTATE_EMBEDDING_MODEL:
            raise ImproperlyConfigured("MEMSTATE_EMBEDDER is openai, so MEMSTATE_EMBEDDING_MODEL must name a model.")
        self.dimension: int = settings.MEMSTATE_EMBEDDING_DIMENSION
        self.model_name: str = settings.MEMSTATE_EMBEDDING_MODEL
        # Local endpoints take any key, and the client insists on one.
        key = settings.MEMSTATE_OPENAI_API_KEY or "none"
        self._client = openai.OpenAI(
            api_key=key,
            # Never from a variable that was set for something else: people are told where texts go.
            base_url=settings.MEMSTATE_OPENAI_BASE_URL or OPENAI_URL,
            timeout=TIMEOUT_SECONDS,
            max_retries=RETRIES,
            # Comes before what OPENAI_CUSTOM_HEADERS says.
            default_headers={"Authorization": f"Bearer {key}"},
            # Texts go to the configured address and are not passed on to another.
            http_client=openai.DefaultHttpxClient(follow_redirects=False, trust_env=False, timeout=TIMEOUT_SECONDS),
        )
        self._client.organization = self._client.project = None

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors, in requests of ``TEXTS_PER_REQUEST``; the client retries with backoff."""
        parts = [self._request(texts[at : at + TEXTS_PER_REQUEST]) for at in range(0, len(texts), TEXTS_PER_REQUEST)]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of one text; such models make no difference between queries and passages."""
        vector: Vectors = self._request([text])[0]
        return vector

    def _request(self, texts: Sequence[str]) -> Vectors:
        try:
            # Endpoints refuse empty texts; a space has the meaning of nothing as well.
            reply = self._client.embeddings.create(model=self.model_name, input=[text or " " for text in texts])
        except openai.OpenAIError as problem:
            raise EmbeddingFailed(f"The embedding endpoint did not answer as expected: {problem}") from problem
        rows = np.array([row.embedding for row in sorted(reply.data, key=lambda row: row.index)], dtype=np.float32)
        if rows.shape != (len(texts), self.dimension):
            raise WrongDimension(
                f"The model {self.model_name} answered with vectors of shape {rows.shape}; "
                f"{(len(texts), self.dimension)} was expected. Does MEMSTATE_EMBEDDING_DIMENSION fit the model?"
            )
        return rows_normalized(rows)
