"""The MCP server: tools and resources over stdio and at /mcp. The logic is in ``memory.agents.tools``."""
