"""A day in operation on one machine: changing sites, agents that ask all the time, and faults."""
