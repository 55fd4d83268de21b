"""TopicMention: the names, words and identifiers in a topic, so that a request to forget finds the topic by index."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models


class TopicMention(models.Model):
    """The names, words and identifiers that a topic has ever contained, in canonical form. Each revision and edit adds
    to them; only purge removes them. Therefore a topic is also found by a name that only its history contains."""

    topic = models.OneToOneField("memory.Topic", on_delete=models.PROTECT, primary_key=True)
    scope = models.ForeignKey("memory.Scope", on_delete=models.PROTECT, db_index=False)
    identifiers = ArrayField(
        models.TextField(), default=list, help_text="Keys of addresses, codes and numbers, sorted."
    )
    words = ArrayField(
        models.TextField(), default=list, help_text="Folded words, sorted; one per character in scripts without spaces."
    )
    aliases = ArrayField(models.TextField(), default=list, help_text="Folded names that this topic says are aliases.")

    class Meta:
        indexes = [
            # Topics that name an identifier.
            GinIndex(fields=["identifiers"], name="topicmention_identifiers"),
            # Topics with these words, whose texts are then checked for whole names.
            GinIndex(fields=["words"], name="topicmention_words"),
            # Topics that state an alias of a name.
            GinIndex(fields=["aliases"], name="topicmention_aliases"),
        ]
