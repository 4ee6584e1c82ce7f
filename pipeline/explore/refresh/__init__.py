"""Refresh of a map: recorded answers of the prior exploration are reused, and a sample of them is asked again."""

from waygraph.pipeline.explore.refresh.exploration_record import AnswerHistory, ExplorationRecord
from waygraph.pipeline.explore.refresh.prior_exploration import PriorExploration
from waygraph.pipeline.explore.refresh.refresh import Refresh
from waygraph.pipeline.explore.refresh.sample import RefreshPlan, plan_refresh

__all__ = ["AnswerHistory", "ExplorationRecord", "PriorExploration", "Refresh", "RefreshPlan", "plan_refresh"]
