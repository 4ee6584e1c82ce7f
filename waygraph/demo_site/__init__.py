"""What does waygraph map when there is no website at hand? A small shop of its own, with a back office."""
