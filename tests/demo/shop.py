"""What is the story's, and what came of the text that was studied at its end."""

from django.db.models import QuerySet

from memory.models import Topic


def of_the_story() -> QuerySet[Topic]:
    """Topics without those that the study has made."""
    return Topic.objects.exclude(kind="source").exclude(kind__startswith="study:")
