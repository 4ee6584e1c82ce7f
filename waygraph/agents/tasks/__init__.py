"""Tasks of published benchmarks: one record for all formats, and readers of the files as they are published."""
