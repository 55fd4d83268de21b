"""Which store a request works on."""

from collections.abc import Callable, Iterator
from typing import Any

from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase

from memory.stores.current import MAIN, store_or_none, store_use

# Their key chooses the store (``memory.access.keys``).
_BY_KEY = ("/v1/", "/mcp")


class StoreMiddleware:
    """Chooses no store for the API and MCP, whose authentication does, and ``main`` for everything else."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request. What is streamed later is still read from its store."""
        with store_use(None if request.path_info.startswith(_BY_KEY) else MAIN):
            response = self._get_response(request)
            # A file is open already, and the web server may send it by itself.
            if response.streaming and not isinstance(response, FileResponse):
                response.streaming_content = _InStore(store_or_none(), response.streaming_content)  # type: ignore[attr-defined]
            return response


class _InStore:
    """An iterator whose steps run in a store."""

    def __init__(self, name: str | None, steps: Any) -> None:
        self._name, self._steps = name, iter(steps)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with store_use(self._name):
            step: bytes = next(self._steps)
            return step

    def close(self) -> None:
        """End the iteration early, as when the client is gone."""
        if hasattr(self._steps, "close"):
            with store_use(self._name):
                self._steps.close()
