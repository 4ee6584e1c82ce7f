"""Benchmark of retrieval over states of web user interfaces."""
