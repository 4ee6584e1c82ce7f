"""When are two looks one state, when do many pages stand for one, and when does a site only repeat itself?"""

from pipeline.explore.identity.features import change
from pipeline.explore.identity.parameters import VolatileParameters
from pipeline.explore.identity.rebase import NO_NOISE, Noise, rebase
from pipeline.explore.identity.recognise import CameBy, Placement, Recogniser
from pipeline.explore.identity.skeleton import Skeleton
from pipeline.explore.identity.traps import Traps

__all__ = [
    "NO_NOISE",
    "CameBy",
    "Noise",
    "Placement",
    "Recogniser",
    "Skeleton",
    "Traps",
    "VolatileParameters",
    "change",
    "rebase",
]
