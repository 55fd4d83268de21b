"""The page archived."""

from django.http import HttpResponse
from django.urls import path

from memory.console.page import READER, ConsoleRequest, page, refusal


@page(get=READER)
def archived(request: ConsoleRequest) -> HttpResponse:
    """Show the page."""
    return refusal(request, 501, "Not yet", "This page is being built.")


urlpatterns = [path("archived/", archived, name="archived")]
