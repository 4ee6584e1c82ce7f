"""The exam: read-only tasks over the benchmark's sites, with how far each site is mapped for them."""
