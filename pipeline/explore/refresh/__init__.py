"""Refresh of a map: recorded answers of the prior exploration are reused, and a sample of them is asked again."""
