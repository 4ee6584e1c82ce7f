"""Which states does a site have, and which actions join them? Adaptive breadth-first exploration."""
