"""The embedded PostgreSQL server: the packaged binaries, run so that only this installation can reach the data.

`server.EmbeddedServer` is the server of a data folder, for the process that owns it. `session.server_session` is for a
command that needs the database for a while. `address.embedded_address` is the address of the server.
"""
