"""Chat models: one protocol, and implementations over an endpoint, a recording, or a script."""
