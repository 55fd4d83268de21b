"""GET /livez, /readyz and /metrics: for supervisors and monitoring, without a key."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from memory.health import READY_CHECKS, health_findings


@csrf_exempt
@require_safe
def livez(_request: HttpRequest) -> HttpResponse:
    """Answer that the process serves requests. No query."""
    return JsonResponse({"status": "ok"})


@csrf_exempt
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """Answer 200 if requests can be served, else 503 with the names of the checks that failed. The reply omits the
    sentences of the checks, because these sentences may name hosts and accounts."""
    findings = health_findings(READY_CHECKS, now=timezone.now())
    failed = [name for name, finding in findings.items() if not finding.ok]
    ready = not failed
    body = {"status": "ok"} if ready else {"status": "not ready", "failed": failed}
    return JsonResponse(body, status=200 if ready else 503)


@csrf_exempt
@require_safe
def metrics(_request: HttpRequest) -> HttpResponse:
    """Return counters and timings in Prometheus's text format."""
    return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


urlpatterns = [path("livez", livez), path("readyz", readyz), path("metrics", metrics)]
