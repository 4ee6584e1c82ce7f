"""Explorer actors, worker slots, and refreshes of mapped sites."""
