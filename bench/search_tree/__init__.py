"""Benchmark of the tree search: find-a-page tasks by search and greedy agents, and returns to states of a tree."""
