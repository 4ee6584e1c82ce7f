"""Encoding of states: a pool of encoder actors, their batches, and the vector spool."""
