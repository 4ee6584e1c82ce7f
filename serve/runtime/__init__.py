"""The Ray Serve application: starting, deployments, and the middleware of its proxies."""
