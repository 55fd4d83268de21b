"""The page overview."""

from django.http import HttpResponse

from memory.console.page import READER, ConsoleRequest, page, refusal


@page(get=READER)
def overview(request: ConsoleRequest) -> HttpResponse:
    """Show the page."""
    return refusal(request, 501, "Not yet", "This page is being built.")
