"""Start of an exploration: the start page, the saved session, secrets, and the network boundary."""
