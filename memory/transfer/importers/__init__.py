"""What other systems have written, as items of ingest. Pure: nothing here reads or writes the store."""
