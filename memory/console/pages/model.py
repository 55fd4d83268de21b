"""Model: which texts are sent where and for what purpose; and whether the language model answers."""

from django.conf import settings
from django.http import HttpResponse
from django.urls import path

from memory.console.page import READER, ConsoleRequest, page, show
from memory.embedding.status import SENT as EMBEDDED
from memory.embedding.status import embedder_summary
from memory.health import outside_check
from memory.llm.client import model_summary
from memory.llm.status import SENT, model_reach_lately


@page(get=READER)
def model(request: ConsoleRequest) -> HttpResponse:
    """Show what is configured and what is sent. No query and no network request."""
    return show(
        request,
        "model.html",
        {
            "outside": outside_check(),
            "model": model_summary(),
            "sent": SENT.values(),
            "embedder": embedder_summary(),
            "embedded": EMBEDDED,
            "seconds": settings.MEMSTATE_LLM_TIMEOUT_SECONDS,
            "retries": settings.MEMSTATE_GROQ_RATE_LIMIT_MAX_RETRIES,
            "cap": settings.MEMSTATE_GROQ_RATE_LIMIT_BACKOFF_CAP_SECONDS,
        },
    )


@page(get=READER)
def model_reach(request: ConsoleRequest) -> HttpResponse:
    """Show whether the model answers. At most every few minutes, this sends a small request to its endpoint, without
    stored text."""
    template = "parts/model_reach.html" if request.htmx else "model_reach.html"
    return show(request, template, {"reach": model_reach_lately()})


urlpatterns = [path("model/", model, name="model"), path("model/reach/", model_reach, name="model_reach")]
