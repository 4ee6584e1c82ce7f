"""Exploration of sites: their states, and the actions between them."""
