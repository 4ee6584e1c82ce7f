"""The papers' tables beside our runs."""
