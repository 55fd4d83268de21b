"""What the lists and overviews of the console read, each with its paging."""
