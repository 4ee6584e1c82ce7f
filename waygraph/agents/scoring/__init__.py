"""Scores of tasks: checks of a recorded final state, and the stored runs that they are made of."""
