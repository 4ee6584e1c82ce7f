"""The agent of WebChoreArena with an explicit memory: every reply writes down anew what later steps need.

`reply` is the form of its answers, `decider` what it is asked, and what it remembers.
"""

from waygraph.agents.memory.decider import MemoryDecider

__all__ = ["MemoryDecider"]
