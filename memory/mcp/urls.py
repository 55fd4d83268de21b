"""The URL of the MCP server, with and without the slash that some clients add."""

from django.urls import path

from memory.mcp.views import mcp

urlpatterns = [path("mcp", mcp), path("mcp/", mcp)]
