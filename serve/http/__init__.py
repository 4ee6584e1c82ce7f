"""The HTTP API: application, routes, middleware, API keys, problem details."""
