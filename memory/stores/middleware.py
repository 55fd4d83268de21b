"""Chooses the store of a request."""

from collections.abc import Callable, Iterator
from typing import Any

from django.http import FileResponse, HttpRequest
from django.http.response import HttpResponseBase

from memory.stores.current import MAIN, store_or_none, store_use

# Below these addresses, the key determines the store (``memory.access.keys``).
_BY_KEY = ("/v1/", "/mcp")


class StoreMiddleware:
    """Chooses ``main``. For requests to the API and MCP, it chooses no store, because their authentication chooses
    it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer the request. A streamed reply is read from the same store."""
        with store_use(None if request.path_info.startswith(_BY_KEY) else MAIN):
            response = self._get_response(request)
            # A file is already open, and the web server may send it directly.
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
        """End the iteration early, for example because the client has disconnected."""
        if hasattr(self._steps, "close"):
            with store_use(self._name):
                self._steps.close()
