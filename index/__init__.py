"""Graphs, versioned storage and vector search, shared by the offline pipeline and the online service."""
