"""How do agents ask in the Model Context Protocol? The same maps as tools, over stdio and over streamable HTTP."""

from serve.mcp.server import create_server

__all__ = ["create_server"]
