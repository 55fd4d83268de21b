"""TopicVector and TopicDocument: the data for the search by meaning and by word. They are written when the text
changes, and when the topic is archived, released or restored, but never by a retrieval."""

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex, HashIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from pgvector.django import HnswIndex, VectorField


class TopicVector(models.Model):
    """The embedding of a topic's text. Recall compares only vectors of the same model."""

    topic = models.OneToOneField("memory.Topic", on_delete=models.PROTECT, primary_key=True)
    scope = models.ForeignKey("memory.Scope", on_delete=models.PROTECT, db_index=False)
    live = models.BooleanField(default=True)
    model = models.CharField(max_length=200, help_text="Name of the model that made the vector.")
    text_hash = models.CharField(max_length=64, help_text="SHA-256 of the text that was embedded.")
    embedding = VectorField(dimensions=settings.MEMSTATE_EMBEDDING_DIMENSION, null=True)

    class Meta:
        indexes = [
            # Recall by meaning over a large store, by inner product, because all vectors have length 1. Vectors of
            # archived topics are not in the index, so forgetting makes recall cheaper.
            HnswIndex(
                name="topicvector_hnsw",
                fields=["embedding"],
                # Fewer links than the default halve the cost of an insert. Recall does not suffer, because words and
                # neighbours find what the index misses (docs/benchmarks.md).
                m=12,
                ef_construction=40,
                opclasses=["vector_ip_ops"],
                condition=models.Q(live=True),
            ),
            # Recall by meaning within a small scope, which compares every vector; also the mean vector of a scope.
            models.Index(fields=["scope", "topic"], name="topicvector_by_scope", condition=models.Q(live=True)),
            # Live topics with exactly this text.
            HashIndex(name="topicvector_text", fields=["text_hash"], condition=models.Q(live=True)),
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
    # The database has the default too, because processes of the older release write during an upgrade.
    outdated = models.BooleanField(
        default=False, db_default=False, help_text="An older release made the document; it is made again."
    )

    class Meta:
        indexes = [
            # Recall by words over a large store.
            GinIndex(fields=["document"], name="topicdocument_gin", condition=models.Q(live=True)),
            # Recall by words within a small scope.
            models.Index(fields=["scope", "topic"], name="topicdocument_by_scope", condition=models.Q(live=True)),
            # The worker's list of documents to count.
            models.Index(fields=["topic"], name="topicdocument_uncounted", condition=models.Q(uncounted=True)),
            # The worker's list of documents to make again.
            models.Index(fields=["topic"], name="topicdocument_outdated", condition=models.Q(outdated=True)),
        ]
