"""Politeness: delays between requests to a host, and a limit on the pages that are busy at once."""
