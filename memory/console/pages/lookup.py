"""The page lookup."""

from django.http import HttpResponse
from django.urls import path

from memory.console.page import READER, ConsoleRequest, page, refusal


@page(get=READER)
def lookup(request: ConsoleRequest) -> HttpResponse:
    """Show the page."""
    return refusal(request, 501, "Not yet", "This page is being built.")


urlpatterns = [path("lookup/", lookup, name="lookup")]
