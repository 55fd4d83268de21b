"""The embedded PostgreSQL server: the packaged binaries, driven so that nobody but us can reach the data."""
