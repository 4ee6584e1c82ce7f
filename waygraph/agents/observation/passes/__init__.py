"""Passes that shorten a tree of accessibility nodes. Each changes the tree in place and keeps every node with an id."""
