"""State identity: recognition of known states, representatives of similar pages, and detection of traps."""

from waygraph.pipeline.explore.identity.features import feature_change
from waygraph.pipeline.explore.identity.parameters import VolatileParameters
from waygraph.pipeline.explore.identity.rebase import rebase
from waygraph.pipeline.explore.identity.recognition import Placement, Recogniser
from waygraph.pipeline.explore.identity.recognition_rules import Arrival
from waygraph.pipeline.explore.identity.skeleton import Skeleton
from waygraph.pipeline.explore.identity.traps import TrapDetector

__all__ = [
    "Arrival",
    "Placement",
    "Recogniser",
    "Skeleton",
    "TrapDetector",
    "VolatileParameters",
    "feature_change",
    "rebase",
]
