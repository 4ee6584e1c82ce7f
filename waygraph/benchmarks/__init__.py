"""Knowledge about published benchmarks: their site lists, task formats and exploration depths.

Only the command line and `waygraph.agents` depend on this package.
"""
