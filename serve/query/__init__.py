"""Answers from maps: search, locate, path, navigate and feedback, in one process, with caches, threads and batching."""
