"""AgentOccam: a plan that grows and is pruned, and a history of what mattered (arXiv:2410.13825).

`plan` is the tree of plans, `pivotal` the part of a page that later prompts show, `reply` the form of answers, `prompt`
what is asked, `judge` chooses among several answers, `decider` joins them.
"""

from waygraph.agents.occam.decider import OccamDecider
from waygraph.agents.occam.plan import PlanTree

__all__ = ["OccamDecider", "PlanTree"]
