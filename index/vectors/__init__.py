"""Which states are nearest to a question? MaxSim over multi-vectors, by Qdrant or exactly."""
