"""How many encoders should there be, on what? One rule: one more while batches wait, one less when one idles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pipeline.encode.registry import wants_gpu
from pipeline.jobs.actors import share
from waygraph.cluster import Machine
from waygraph.settings import Settings

#: Of all CPUs, what encoders ask for together, and one of them at most. They work in bursts, and may use more.
_CPU_SHARE, _MOST_CPUS = 0.15, 0.25

#: Batches that may be in an encoder: one is computed, the next one is on its way.
IN_FLIGHT = 2
#: An encoder beyond the least that had nothing to do for so long is let go. Loading one anew takes about as long.
IDLE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Demand:
    """What there is to do, and who is there to do it.

    Attributes
    ----------
    encoders : running ones, those that are starting included.
    starting : of them, those that are still starting.
    waiting : batches that no encoder has taken yet.
    idle_seconds : for how long the encoder that has idled longest had nothing to do; 0 when all are busy.

    """

    encoders: int
    starting: int = 0
    waiting: int = 0
    idle_seconds: float = 0.0


def wanted(demand: Demand, least: int, most: int) -> int:
    """How many encoders there should be.

    There are never less than `least`. One more is started, up to `most`, while more batches wait than a new one would
    take at once; one at a time, so that the effect of each shows before the next. One is let go after it idled.

    >>> wanted(Demand(1, waiting=3), 1, 4), wanted(Demand(2, starting=1, waiting=9), 1, 4)
    (2, 2)
    >>> wanted(Demand(3, idle_seconds=31), 1, 4), wanted(Demand(0), 1, 4)
    (2, 1)
    """
    if demand.encoders < least:
        return least
    if demand.waiting > IN_FLIGHT and not demand.starting and demand.encoders < most:
        return demand.encoders + 1
    if not demand.waiting and demand.idle_seconds >= IDLE_SECONDS and demand.encoders > least:
        return demand.encoders - 1
    return demand.encoders


@dataclass(frozen=True, slots=True)
class EncoderRoom:
    """How many encoders there may be, and what each reserves.

    Attributes
    ----------
    least, most : actors.
    cpus, gpus : of each.

    """

    least: int
    most: int
    cpus: float
    gpus: float

    @classmethod
    def of(cls, settings: Settings, *, cpus: float, gpus: float) -> Self:
        """The room on a cluster with so many CPUs and GPUs."""
        jobs = settings.jobs
        each = jobs.gpus_per_encoder
        if each is None:
            each = 1.0 if gpus and wants_gpu(settings.encode.encoder) else 0.0
        fitting = int(gpus / each) if each else 0
        most = max(jobs.encoders_min, jobs.encoders_max or fitting)
        return cls(jobs.encoders_min, most, share(_CPU_SHARE * cpus / most, _MOST_CPUS), each)


def without_gpus(machines: Sequence[Machine]) -> Sequence[Machine]:
    """Machines for browsers where encoders use GPUs: a browser takes the CPUs that feed a GPU. All, if all have GPUs.

    >>> [machine.id for machine in without_gpus([Machine("a", 4.0), Machine("b", 8.0, 1.0)])]
    ['a']
    >>> [machine.id for machine in without_gpus([Machine("b", 8.0, 1.0)])]
    ['b']
    """
    return [machine for machine in machines if not machine.gpus] or machines
