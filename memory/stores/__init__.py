"""A store is one customer's memory: the tables of ``memory`` in one PostgreSQL schema.

``current`` chooses the store of a request, a job or a command. ``database`` is the Django backend that sends every
statement to this store. ``models`` contains the tables that all stores share, in the schema ``public``.
"""
