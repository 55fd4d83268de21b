"""Commands about processes."""
