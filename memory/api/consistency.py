"""Routes that the replica may answer."""

import functools
from collections.abc import Callable
from typing import Concatenate, Literal, ParamSpec

from django.http import HttpRequest, HttpResponse

from memory.core.errors import ValueRefused
from memory.core.problem_codes import ProblemCode
from memory.models.replica import replica_answer

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]

CONSISTENCY = "X-MemState-Consistency"
LAG = "X-MemState-Replica-Lag"


def consistency(unasked: Literal["strong", "eventual"]) -> Callable[[View[P]], View[P]]:
    """Let the replica answer a route that only reads, if the request has ``X-MemState-Consistency: eventual``.

    ``unasked`` applies to requests without this header. A reply of the replica has its lag in seconds. Raises
    ``ValueRefused`` for another value of the header.
    """

    def declare(view: View[P]) -> View[P]:
        @functools.wraps(view)
        def answer(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            wanted = request.headers.get(CONSISTENCY, unasked)
            if wanted not in ("strong", "eventual"):
                raise ValueRefused(f"{CONSISTENCY} must be strong or eventual.", code=ProblemCode.UNKNOWN_CHOICE)
            if wanted == "strong":
                return view(request, *args, **kwargs)
            reply, lag = replica_answer(lambda: view(request, *args, **kwargs))
            if lag is not None:
                reply.headers[LAG] = f"{lag:.3f}"
            return reply

        return answer

    return declare
