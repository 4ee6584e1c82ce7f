"""WebNavigator's agent: few actions, one of which goes anywhere on a mapped site (Retrieve, Reason, Teleport).

`reply` is the form of its answers, `prompt` what it is asked, `decider` its memory and rules, `page_selector` the
choice among the pages that a search found.
"""

from waygraph.agents.webnavigator.decider import WebNavigatorDecider
from waygraph.agents.webnavigator.page_selector import ModelPageSelector

__all__ = ["ModelPageSelector", "WebNavigatorDecider"]
