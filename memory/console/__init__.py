"""The operator console: one module per page. The logic is in the other packages."""
