"""Plain records of an exploration: states, outcomes, noise, statistics, the finished capture."""
