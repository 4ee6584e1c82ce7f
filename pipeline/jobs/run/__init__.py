"""Runs of many sites: manifest, run database, fair queue, budget, coordinator."""
