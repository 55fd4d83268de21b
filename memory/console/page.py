"""Common functions of all pages: roles, rendering, and refusals.

A view is declared with ``@page(get=..., post=...)``, which names the least role for each allowed method. The roles are
kept on the view as ``console_roles``. The permission tests read them for every URL and fail for a view without them.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render, resolve_url
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django_htmx.http import HttpResponseClientRedirect, HttpResponseClientRefresh
from django_htmx.middleware import HtmxDetails

from memory.access.accounts import ROLES
from memory.access.limits import TooManyRequests
from memory.access.principal import Principal
from memory.console.navigation import places_shown, tabs_shown
from memory.console.people import may, principal_of, store_enter
from memory.console.queries.waiting import waiting_counts
from memory.core.errors import Conflict, MemoryProblem, NotAllowed, NotVisible
from memory.core.problem_codes import ProblemCode
from memory.core.scopes import ROOT
from memory.forgetting.pause import pauses_active
from memory.stores.keys import StoreBehind, StoreElsewhere, store_refusal
from memory.stores.replica import LAG, replica_answer, replica_is_set, replica_parts
from memory.stores.versions import version_current

P = ParamSpec("P")
ANYBODY = "anybody"
# The cookie of a person whose last change may not be on the replica yet, and its lifetime in seconds.
WROTE, WROTE_SECONDS = "memstate-wrote", 10
READER, OPERATOR, ADMINISTRATOR = ROLES


class ConsoleRequest(HttpRequest):
    """A request of a person who is signed in and has the required role. This class is only for type checkers: views get
    Django's own request, on which ``page`` has set these members. ``stores`` maps each store that the person may open
    to the version of its tables. ``store`` is the open store."""

    htmx: HtmxDetails
    user: User
    role: str
    principal: Principal
    store: str
    stores: dict[str, str]


View = Callable[Concatenate[ConsoleRequest, P], HttpResponseBase]

_STATUS: list[tuple[type[MemoryProblem], int, str]] = [
    (NotVisible, 404, "Not found"),
    (NotAllowed, 403, "Not allowed"),
    (Conflict, 409, "Conflict"),
    (TooManyRequests, 429, "Too many requests"),
    (StoreBehind, 503, "Not available"),
    (StoreElsewhere, 421, "On another cluster"),
]


def page(
    *, behind: bool = False, **roles: str
) -> Callable[[View[P]], Callable[Concatenate[HttpRequest, P], HttpResponseBase]]:
    """Declare a view. ``roles`` maps each allowed method, in lower case, to its least role. The view works on the store
    that is open in the session.

    A person who is not signed in is redirected to the sign-in page. A request without the role, or one that raises
    ``MemoryProblem``, gets a page with one sentence. ``HEAD`` needs the role of ``GET``. A store with tables of another
    release (503) or on another cluster (421) is refused, unless ``behind`` is true.
    """
    needed = {method.upper(): role for method, role in roles.items()}
    if "GET" in needed:
        needed["HEAD"] = needed["GET"]

    def declare(view: View[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
        @functools.wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _to_sign_in(request)
            role = store_enter(request)
            if role is None:
                return refusal(
                    request, 403, "Not allowed", "This account has no access to the console.", ProblemCode.NOT_ALLOWED
                )
            store: str = request.store  # type: ignore[attr-defined]
            if not behind and request.stores[store] != version_current():  # type: ignore[attr-defined]
                return refused(request, store_refusal(store))
            if request.headers.get("X-Console-Store", store) != store:
                # The user has meanwhile opened another store in another window.
                return HttpResponseClientRefresh()
            request.role = role  # type: ignore[attr-defined]
            request.principal = principal_of(request.user, role)  # type: ignore[attr-defined]
            if request.method not in needed:
                return _method_refused(request, needed)
            least = needed[request.method]
            if not may(role, least):
                return refusal(
                    request,
                    403,
                    "Not allowed",
                    f"This requires the role {least}; your role is {role}.",
                    ProblemCode.ROLE_TOO_LOW,
                )
            try:
                if request.method in ("GET", "HEAD") and WROTE not in request.COOKIES:
                    return _from_replica(lambda: view(request, *args, **kwargs))  # type: ignore[arg-type]
                reply = view(request, *args, **kwargs)  # type: ignore[arg-type]
            except MemoryProblem as problem:
                return refused(request, problem)
            if request.method not in ("GET", "HEAD") and replica_is_set():
                # Until the replica has the change, this person reads from the primary.
                reply.set_cookie(WROTE, "1", max_age=WROTE_SECONDS, httponly=True, samesite="Lax")
            return reply

        declared = never_cache(guarded)
        declared.console_roles = needed  # type: ignore[attr-defined]
        return declared

    return declare


def _from_replica(view: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    reply, lag = replica_answer(view)
    if lag is not None:
        reply.headers[LAG] = f"{lag:.3f}"
        if isinstance(reply, StreamingHttpResponse):
            reply.streaming_content = replica_parts(cast("Iterator[bytes]", reply.streaming_content))
    return reply


def show(
    request: HttpRequest, template: str, context: Mapping[str, Any] | None = None, *, status: int = 200
) -> HttpResponse:
    """Render a page. Every template can use ``now``, ``role``, ``may_operate``, ``may_administer``, the ``places`` of
    the menu and the ``tabs`` of the current place. ``pauses`` (the pauses of forgetting, with ``paused_everywhere``)
    and ``waiting`` (counts of what needs a decision) run one query each, and only if a template uses them."""
    role = getattr(request, "role", None)
    pauses: Any = (context or {}).get("pauses", SimpleLazyObject(functools.partial(pauses_active, timezone.now())))
    common = {
        "now": timezone.now(),
        "role": role,
        "may_operate": may(role, OPERATOR),
        "may_administer": may(role, ADMINISTRATOR),
        "is_part": bool(getattr(request, "htmx", False)),
        "pauses": pauses,
        "paused_everywhere": SimpleLazyObject(lambda: any(pause.scope == ROOT for pause in pauses)),
        "places": SimpleLazyObject(functools.partial(places_shown, request, role or READER)),
        "tabs": SimpleLazyObject(
            functools.partial(tabs_shown, request, role or READER, within=(context or {}).get("within", ""))
        ),
        "waiting": SimpleLazyObject(functools.partial(waiting_counts, timezone.now())),
    }
    reply = render(request, f"console/{template}", {**common, **(context or {})}, status=status)
    # The script of the pages inserts only replies with this header, including errors.
    reply.headers["X-Console"] = "1"
    # With the header HX-Request, the same URL returns only a part of the page.
    reply.headers["Vary"] = ", ".join(filter(None, [reply.headers.get("Vary"), "HX-Request"]))
    return reply


def refused(request: HttpRequest, problem: MemoryProblem) -> HttpResponse:
    """Return the reply to a problem: a page or, for a partial update, a notice."""
    status, title = next(
        ((number, said) for kind, number, said in _STATUS if isinstance(problem, kind)), (400, "Refused")
    )
    reply = refusal(request, status, title, problem.sentence, problem.code)
    if isinstance(problem, TooManyRequests):
        reply.headers["Retry-After"] = str(problem.retry_after)
    return reply


def refusal(request: HttpRequest, status: int, title: str, sentence: str, code: str) -> HttpResponse:
    """Return the page or, for a partial update, the notice that says why something was not done. Both contain ``code``
    in the attribute ``data-code``."""
    context = {"title": title, "sentence": sentence, "code": code}
    if getattr(request, "htmx", False):
        reply = show(request, "parts/notice.html", context, status=status)
        # Whatever part was requested, nothing is replaced: the sentence is added to the notices of the page.
        reply.headers["HX-Reselect"] = ".notice"
        reply.headers["HX-Retarget"] = "#notices"
        reply.headers["HX-Reswap"] = "beforeend"
        return reply
    return show(request, "refusal.html", {**context, "status": status}, status=status)


def go(request: HttpRequest, to: str, *args: Any, **kwargs: Any) -> HttpResponse:
    """Redirect to another page after a change, with or without JavaScript. ``to`` is a view name or a URL."""
    address = resolve_url(to, *args, **kwargs)
    return HttpResponseClientRedirect(address) if getattr(request, "htmx", False) else HttpResponseRedirect(address)


def _method_refused(request: HttpRequest, needed: Iterable[str]) -> HttpResponse:
    reply = refusal(
        request,
        405,
        "Method not allowed",
        "This URL accepts form submissions only. Go back to the page with the form.",
        ProblemCode.METHOD_NOT_POSSIBLE,
    )
    reply.headers["Allow"] = ", ".join(needed)
    return reply


def _to_sign_in(request: HttpRequest) -> HttpResponse:
    # After signing in, the user returns to the page that sent the partial update or form.
    details: HtmxDetails | None = getattr(request, "htmx", None)
    if details:
        wanted = details.current_url_abs_path or "/"
    elif request.method == "GET":
        wanted = request.get_full_path()
    else:
        wanted = _page_of(request)
    address = f"{reverse(settings.LOGIN_URL)}?{urlencode({'next': wanted})}"
    return go(request, address)


def _page_of(request: HttpRequest) -> str:
    came_from = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(came_from, allowed_hosts={request.get_host()}):
        return "/"
    parts = urlsplit(came_from)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
