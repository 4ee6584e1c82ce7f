"""Upkeep of a store: garbage collection, integrity checks and repair, copies, retention."""
