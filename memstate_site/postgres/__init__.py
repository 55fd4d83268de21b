"""The embedded PostgreSQL server: the packaged binaries, run so that only this installation can reach the data.

`server.EmbeddedServer` is the server of a data folder as its owner sees it, `session.server_session` what a command
uses that needs a database for a while, and `address.embedded_address` where everyone else finds it.
"""
