"""The pages, one module each; ``memory.console.urls`` is the table of their addresses."""
