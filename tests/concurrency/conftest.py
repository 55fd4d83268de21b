"""The server of these tests takes as many connections at once as the real one does."""

from django.core.servers.basehttp import WSGIServer

# Django's own server lets ten wait and resets the others.
WSGIServer.request_queue_size = 256
