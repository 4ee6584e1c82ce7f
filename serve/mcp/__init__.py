"""The maps as tools of the Model Context Protocol, over stdio and over streamable HTTP."""

from waygraph.serve.mcp.server import create_server

__all__ = ["create_server"]
