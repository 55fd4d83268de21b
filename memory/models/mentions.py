"""TopicMention: whom and what a topic names, so that a request to forget finds it without reading every text."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models


class TopicMention(models.Model):
    """What a topic has ever said, in canonical form: it is added to with each revision and edit, and only purge takes
    from it. So a topic whose history names a person is found, even if its current text no longer does."""

    topic = models.OneToOneField("memory.Topic", on_delete=models.PROTECT, primary_key=True)
    scope = models.ForeignKey("memory.Scope", on_delete=models.PROTECT, db_index=False)
    identifiers = ArrayField(models.TextField(), default=list, help_text="<kind>:<canonical form>, sorted.")
    words = ArrayField(
        models.TextField(), default=list, help_text="Folded words, sorted; scripts without spaces by sign."
    )
    aliases = ArrayField(
        models.TextField(), default=list, help_text="Folded names that this topic says are one with another name."
    )

    class Meta:
        indexes = [
            # Who names this e-mail address, this card, this date?
            GinIndex(fields=["identifiers"], name="topicmention_identifiers"),
            # Who mentions these words? What is found is read and checked for whole names.
            GinIndex(fields=["words"], name="topicmention_words"),
            # Which other names does this one go by?
            GinIndex(fields=["aliases"], name="topicmention_aliases"),
        ]
