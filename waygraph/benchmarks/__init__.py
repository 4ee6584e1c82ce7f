"""Knowledge about published benchmarks: their site lists, task formats and exploration depths.

Nothing below the command line depends on this package.
"""
