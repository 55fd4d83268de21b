"""The page topic."""

import uuid

from django.http import HttpResponse
from django.urls import path

from memory.console.page import READER, ConsoleRequest, page, refusal


@page(get=READER)
def topic(request: ConsoleRequest, topic_id: uuid.UUID) -> HttpResponse:
    """Show the page."""
    return refusal(request, 501, "Not yet", f"This page is being built: {topic_id}.")


urlpatterns = [path("topics/<uuid:topic_id>/", topic, name="topic")]
