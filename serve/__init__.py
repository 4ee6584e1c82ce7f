"""The online half of waygraph: a Ray Serve application that answers agents over HTTP and MCP."""
