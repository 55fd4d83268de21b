"""Every address of the site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from memory.api.app import api
from memory.api.health import urlpatterns as health

urlpatterns = [
    # The API comes first, because addresses are compared in order and the API gets the most requests.
    path("v1/", api.urls),
    path("", include("memory.console.urls")),
    path("", include(health)),
    path("", include("memory.mcp.urls")),
    path("admin/", admin.site.urls),
]
