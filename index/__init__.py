"""What both halves share: graphs, versioned storage, vector search."""
