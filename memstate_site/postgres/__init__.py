"""The embedded PostgreSQL server: the packaged binaries, driven so that nobody but us can reach the data.

`server.EmbeddedServer` is the server of a data folder as its owner sees it, `session.server_running` what a command
uses that needs a database for a while, and `address.embedded_address` where everyone else finds it.
"""
