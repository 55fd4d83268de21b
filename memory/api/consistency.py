"""Routes that the replica may answer."""

import functools
from collections.abc import Callable
from typing import Concatenate, Literal, ParamSpec

from django.http import HttpRequest, HttpResponse

from memory.core.errors import ValueRefused
from memory.stores.replica import LAG, replica_answer

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]

CONSISTENCY = "X-MemState-Consistency"


def consistency(default: Literal["strong", "eventual"]) -> Callable[[View[P]], View[P]]:
    """Return a decorator for a route that does not write. If the header ``X-MemState-Consistency`` is ``eventual``, the
    replica answers. ``default`` is used if the request has no such header. The route raises ``ValueRefused`` for an
    unknown value of the header."""

    def declare(view: View[P]) -> View[P]:
        @functools.wraps(view)
        def answer(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            wanted = request.headers.get(CONSISTENCY, default)
            if wanted not in ("strong", "eventual"):
                raise ValueRefused(f"{CONSISTENCY} must be strong or eventual.")
            if wanted == "strong":
                return view(request, *args, **kwargs)
            reply, lag = replica_answer(lambda: view(request, *args, **kwargs))
            if lag is not None:
                reply.headers[LAG] = f"{lag:.3f}"
            return reply

        return answer

    return declare
