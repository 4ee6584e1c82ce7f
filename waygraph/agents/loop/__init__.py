"""The loop of agents that ask a chat model: observe, decide, act, remember.

`agent.ModelAgent` is the loop. A `decision.Decider` is what makes one agent differ from another: its prompt, the form
of its reply, its memory. `prompt` writes the parts that prompts share, `usage_meter` counts what a step took.
"""
