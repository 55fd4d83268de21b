"""The store for agents that speak MCP: tools and resources over stdio and at /mcp. No logic: it calls the toolbox."""
