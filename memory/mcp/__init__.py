"""The MCP server: tools and resources over stdio and at /mcp. Most tools come from ``memory.agents.tools``."""
