"""TopicVector and TopicDocument: what recall searches by meaning and by word. Written only when the text changes or
the topic leaves or re-enters retrieval, never by a retrieval itself."""

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from pgvector.django import HnswIndex, VectorField


class TopicVector(models.Model):
    """The embedding of a topic's text. Vectors of two models are never compared: recall asks for one model's."""

    topic = models.OneToOneField("memory.Topic", on_delete=models.PROTECT, primary_key=True)
    scope = models.ForeignKey("memory.Scope", on_delete=models.PROTECT, db_index=False)
    live = models.BooleanField(default=True)
    model = models.CharField(max_length=200, help_text="Name of the model that made the vector.")
    text_hash = models.CharField(max_length=64, help_text="SHA-256 of the text that was embedded.")
    embedding = VectorField(dimensions=settings.MEMSTATE_EMBEDDING_DIMENSION, null=True)

    class Meta:
        indexes = [
            # Semantic recall over a large store, by inner product: all vectors have length 1. Archived vectors leave
            # it, so forgetting makes recall cheaper.
            HnswIndex(
                name="topicvector_hnsw",
                fields=["embedding"],
                # Fewer links than the default halve the cost of an insert; what is missed costs no recall, as words and
                # neighbours bring it in (docs/benchmarks.md).
                m=12,
                ef_construction=40,
                opclasses=["vector_ip_ops"],
                condition=models.Q(live=True),
            ),
            # Semantic recall within a small scope compares exactly; the mean vector is taken over its first rows.
            models.Index(fields=["scope", "topic"], name="topicvector_by_scope", condition=models.Q(live=True)),
            # The worker's list of topics that wait for an embedding (deferred ingest, reembed).
            models.Index(fields=["topic"], name="topicvector_waiting", condition=models.Q(embedding__isnull=True)),
        ]


class TopicDocument(models.Model):
    """The words of a topic: title, summary and current field values."""

    topic = models.OneToOneField("memory.Topic", on_delete=models.PROTECT, primary_key=True)
    scope = models.ForeignKey("memory.Scope", on_delete=models.PROTECT, db_index=False)
    live = models.BooleanField(default=True)
    document = SearchVectorField()
    length = models.PositiveIntegerField(help_text="Number of word positions in the document, for BM25.")
    counted = SearchVectorField(null=True, help_text="The document as last counted into Lexeme.")
    uncounted = models.BooleanField(default=True, help_text="Lexeme does not yet reflect document and live.")

    class Meta:
        indexes = [
            # Lexical recall over a large store.
            GinIndex(fields=["document"], name="topicdocument_gin", condition=models.Q(live=True)),
            # Lexical recall within a small scope.
            models.Index(fields=["scope", "topic"], name="topicdocument_by_scope", condition=models.Q(live=True)),
            # The worker's list of documents to count.
            models.Index(fields=["topic"], name="topicdocument_uncounted", condition=models.Q(uncounted=True)),
        ]
