"""Compresses pages. Replies of the API are small, and a streamed reply must arrive part by part."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware


class PageCompression(GZipMiddleware):
    """Compresses HTML. Django adds random bytes, so that the length of a page does not reveal its CSRF token."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Compress ``response`` if it is a whole HTML page and the browser accepts it."""
        if response.streaming or not response.get("Content-Type", "").startswith("text/html"):
            return response
        return super().process_response(request, response)
