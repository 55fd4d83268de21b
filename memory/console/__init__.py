"""The operator console: one module per page, and no logic. What a page shows or does is a function of another room."""
