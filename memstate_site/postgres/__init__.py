"""The embedded PostgreSQL server: the packaged binaries, run so that only this installation can reach the data."""
