"""Runs of many tasks: workers with browsers of their own, and a folder that an interrupted run is resumed from.

`task_run` gives tasks to workers and decides what is tried again. `worker` is the process of one browser. `attempt`
does one task in it. `trace` writes down what the agent did. What a run leaves is a stored run
(`waygraph.agents.scoring.run_folder`), which can be scored at any time.
"""
