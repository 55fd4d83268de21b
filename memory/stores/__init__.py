"""Stores: each is one customer's memory, the tables of ``memory`` in a PostgreSQL schema of its own.

``current`` chooses the store of a request, a job or a command; ``database`` is the backend of Django that sends every
statement to it; ``models`` are the tables that all stores share, in the schema ``public``.
"""
