"""How do states get vectors? A pool of encoder actors, the batches they take, and where vectors wait."""
