"""Encoders: states and queries to multi-vectors."""
