"""The crawl: frontier, workers, loading, reverting, and building the graph."""
