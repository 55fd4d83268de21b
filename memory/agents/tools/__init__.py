"""The tools with which a model may read and write the store, and the loop that calls them."""
