"""Which sites does a run cover, and under which settings? Lists that people write, checked."""
