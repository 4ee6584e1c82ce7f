"""Catalogues of a site's tools in formats of others: MCP tool definitions, an OpenAPI document, WebMCP declarations."""
