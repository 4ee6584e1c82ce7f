"""Size of the encoder pool, and the resources of an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from waygraph.cluster import ClusterMachine
from waygraph.core.settings import Settings
from waygraph.pipeline.encode.registry import wants_gpu

#: Share of all CPUs that encoders reserve together, and maximum per encoder. They work in bursts and may use more.
_CPU_SHARE, _MAX_CPUS = 0.15, 0.25

#: Number of batches assigned to an encoder: one is computed while the next one is transferred.
BATCHES_IN_FLIGHT = 2
#: Idle time after which an encoder above the minimum is stopped. Loading one takes about as long.
IDLE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class EncoderDemand:
    """State of the pool that decides its size.

    Attributes
    ----------
    encoders
        Number of encoders, starting ones included.
    starting
        Number of starting encoders.
    waiting
        Number of unassigned batches.
    idle_seconds
        Longest idle time of an encoder, in seconds. 0 if all are busy.
    """

    encoders: int
    starting: int = 0
    waiting: int = 0
    idle_seconds: float = 0.0


def target_size(demand: EncoderDemand, least: int, most: int) -> int:
    """Return how many encoders there should be.

    One more is started, up to `most`, while more batches wait than a new encoder would take at once. They start one at
    a time, so that the effect of one shows before the next. One is stopped, down to `least`, after it idled.

    Parameters
    ----------
    demand
        State of the pool.
    least
        Minimal number of encoders.
    most
        Maximal number of encoders.

    Returns
    -------
    int
        The target, at most one more or less than there are, except below `least`.

    Examples
    --------
    >>> target_size(EncoderDemand(1, waiting=3), 1, 4), target_size(EncoderDemand(2, starting=1, waiting=9), 1, 4)
    (2, 2)
    >>> target_size(EncoderDemand(3, idle_seconds=31), 1, 4), target_size(EncoderDemand(0), 1, 4)
    (2, 1)
    """
    if demand.encoders < least:
        return least
    if demand.waiting > BATCHES_IN_FLIGHT and not demand.starting and demand.encoders < most:
        return demand.encoders + 1
    if not demand.waiting and demand.idle_seconds >= IDLE_SECONDS and demand.encoders > least:
        return demand.encoders - 1
    return demand.encoders


@dataclass(frozen=True, slots=True)
class EncoderResources:
    """Limits of the number of encoders, and what each reserves.

    Attributes
    ----------
    least
        Minimal number of encoders.
    most
        Maximal number of encoders.
    cpus
        CPUs of each.
    gpus
        GPUs of each.
    """

    least: int
    most: int
    cpus: float
    gpus: float

    @classmethod
    def of(cls, settings: Settings, *, cpus: float, gpus: float) -> Self:
        """Return the resources on a cluster with so many CPUs and GPUs."""
        jobs = settings.jobs
        each = jobs.gpus_per_encoder
        if each is None:
            each = 1.0 if gpus and wants_gpu(settings.encode.encoder) else 0.0
        fitting = int(gpus / each) if each else 0
        most = max(jobs.encoders_min, jobs.encoders_max or fitting)
        return cls(jobs.encoders_min, most, cpu_share(_CPU_SHARE * cpus / most, _MAX_CPUS), each)


def machines_for_browsers(machines: Sequence[ClusterMachine]) -> Sequence[ClusterMachine]:
    """Return the machines without GPUs, or all if all have GPUs. A browser would take the CPUs that feed a GPU.

    >>> [each.id for each in machines_for_browsers([ClusterMachine("a", 4.0), ClusterMachine("b", 8.0, 1.0)])]
    ['a']
    >>> [each.id for each in machines_for_browsers([ClusterMachine("b", 8.0, 1.0)])]
    ['b']
    """
    return [machine for machine in machines if not machine.gpus] or machines


def cpu_share(cpus: float, most: float) -> float:
    """Return a share of a CPU, rounded down to hundredths, at least 0.01.

    >>> cpu_share(0.333, 0.5), cpu_share(3, 0.5), cpu_share(0, 1)
    (0.33, 0.5, 0.01)
    """
    return max(0.01, int(100 * min(cpus, most)) / 100)
