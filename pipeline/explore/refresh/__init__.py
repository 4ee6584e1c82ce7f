"""How is a site explored that was explored before? What it answered then is recalled, a sample of it asked again."""

from pipeline.explore.refresh.recall import Recall
from pipeline.explore.refresh.record import Record, Track
from pipeline.explore.refresh.sample import Plan, choose
from pipeline.explore.refresh.visit import Visit

__all__ = ["Plan", "Recall", "Record", "Track", "Visit", "choose"]
