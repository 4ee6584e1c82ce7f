"""Totals of many outcomes: one pass, with a few numbers of memory per site."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from waygraph.pipeline.jobs.report.outcomes import (
    DepthFindings,
    Exploration,
    Findings,
    Promising,
    Publication,
    Quartiles,
    Reason,
    SiteOutcome,
    Totals,
)

#: Number of reasons that are listed, the most frequent first. The rest is one entry.
_NAMED = 40
#: Maximal number of distinct reasons, since pages can produce any number of them.
_KNOWN = 5_000
_LONGEST = 300
#: Number of sites at which a larger budget would find most.
_PROMISING = 10
OTHERS = "others"


@dataclass(slots=True)
class _Reasons:
    counts: Counter[str] = field(default_factory=Counter)
    sites: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, count: int, example: str) -> None:
        if not count:
            return
        name = reason[:_LONGEST]
        if name not in self.counts and len(self.counts) >= _KNOWN:
            name = OTHERS
        self.counts[name] += count
        self.sites[name] += 1
        self.examples.setdefault(name, example[:_LONGEST])

    def most_common(self) -> tuple[Reason, ...]:
        ranked = sorted(self.counts.items(), key=lambda item: (item[0] == OTHERS, -item[1], item[0]))
        named = [
            Reason(reason=name, count=count, sites=self.sites[name], example=self.examples[name])
            for name, count in ranked[:_NAMED]
        ]
        if rest := ranked[_NAMED:]:
            sites = sum(self.sites[name] for name, _ in rest)
            named.append(Reason(reason=OTHERS, count=sum(count for _, count in rest), sites=sites))
        return tuple(named)


@dataclass(slots=True)
class _Depth:
    states: int = 0
    activations: int = 0
    seconds: float = 0.0
    sites: int = 0
    velocities: array[float] = field(default_factory=lambda: array("d"))


class _OutcomeCounter:
    def __init__(self) -> None:
        self.statuses: Counter[str] = Counter()
        self.edges = self.states = self.retried = self.encoded = self.reused = self.without_vectors = 0
        self.error_codes: set[int] = set()
        self.depths: dict[int, _Depth] = {}
        self.states_per_site, self.seconds_per_site = array("d"), array("d")
        self.promising: list[tuple[float, str, Exploration]] = []
        self.errors, self.stopped, self.skipped, self.failed = _Reasons(), _Reasons(), _Reasons(), _Reasons()

    def add(self, site: SiteOutcome) -> None:
        self.statuses[site.status] += 1
        self.retried += site.attempts > 1
        if site.seconds:
            self.seconds_per_site.append(site.seconds)
        if site.error is not None:
            self.error_codes.add(site.error.exit_code)
            self.errors.add(site.error.type, 1, site.error.message)
        if site.exploration is not None:
            self._add_exploration(site.site, site.exploration)
            self.edges += site.exploration.edges if site.status == "published" else 0
        if site.publication is not None:
            self._add_publication(site.publication)

    def _add_exploration(self, site: str, exploration: Exploration) -> None:
        for row in exploration.depths:
            depth = self.depths.setdefault(row.depth, _Depth())
            depth.states += row.states
            depth.activations += row.activations
            depth.seconds += row.seconds
            depth.sites += 1
            if row.seconds > 0:
                depth.velocities.append(row.states_per_minute)
        if exploration.stopped_by and exploration.expected_gain:
            self.promising.append((-exploration.expected_gain, site, exploration))
            if len(self.promising) > 2 * _PROMISING:
                self.promising = sorted(self.promising, key=_by_gain)[:_PROMISING]
        if exploration.partial:
            self.stopped.add(exploration.stopped_by or "unknown", 1, site)
        for reason, count in exploration.skipped.items():
            self.skipped.add(reason, count, site)
        for reason, count in exploration.failed.items():
            self.failed.add(reason, count, site)

    def _add_publication(self, publication: Publication) -> None:
        self.states += publication.states
        self.states_per_site.append(publication.states)
        self.encoded += publication.encoded
        self.reused += publication.reused
        self.without_vectors += publication.without_vectors

    def findings(self) -> Findings:
        return Findings(
            totals=Totals(sites=self.statuses.total(), states=self.states, edges=self.edges, **self.statuses),
            error_codes=tuple(sorted(self.error_codes)),
            depths=tuple(
                DepthFindings(
                    depth=number,
                    sites=depth.sites,
                    states=depth.states,
                    activations=depth.activations,
                    seconds=round(depth.seconds, 3),
                    velocity=quartiles(depth.velocities) or _NO_NUMBERS,
                )
                for number, depth in sorted(self.depths.items())
            ),
            states_per_site=quartiles(self.states_per_site),
            states_histogram=histogram(self.states_per_site),
            seconds_per_site=quartiles(self.seconds_per_site),
            seconds_histogram=histogram(self.seconds_per_site),
            errors=self.errors.most_common(),
            stopped=self.stopped.most_common(),
            skipped=self.skipped.most_common(),
            failed=self.failed.most_common(),
            promising=tuple(
                Promising(
                    site=site,
                    states=exploration.states,
                    stopped_by=exploration.stopped_by,
                    expected_gain=exploration.expected_gain,
                    rounds=exploration.rounds,
                )
                for _, site, exploration in sorted(self.promising, key=_by_gain)[:_PROMISING]
            ),
            retried=self.retried,
            encoded=self.encoded,
            reused=self.reused,
            without_vectors=self.without_vectors,
        )


_NO_NUMBERS = Quartiles(least=0, lower=0, median=0, upper=0, most=0, total=0, count=0)


def _by_gain(row: tuple[float, str, Exploration]) -> tuple[float, str]:
    return row[:2]


def summarize_outcomes(sites: Iterable[SiteOutcome]) -> Findings:
    """Return the totals of outcomes."""
    counter = _OutcomeCounter()
    for site in sites:
        counter.add(site)
    return counter.findings()


def quartiles(numbers: Iterable[float]) -> Quartiles | None:
    """Return the quartiles of numbers by linear interpolation, or None without numbers.

    >>> found = quartiles([4, 1, 2, 3, 5])
    >>> found.least, found.lower, found.median, found.upper, found.most, found.total
    (1.0, 2.0, 3.0, 4.0, 5.0, 15.0)
    """
    ranked = sorted(numbers)
    if not ranked:
        return None

    def at(share: float) -> float:
        position = share * (len(ranked) - 1)
        below = int(position)
        above = min(below + 1, len(ranked) - 1)
        return round(ranked[below] + (position - below) * (ranked[above] - ranked[below]), 3)

    return Quartiles(
        least=at(0), lower=at(0.25), median=at(0.5), upper=at(0.75), most=at(1), total=round(sum(ranked), 3),
        count=len(ranked),
    )  # fmt: skip


def histogram(numbers: Iterable[float]) -> tuple[tuple[int, int], ...]:
    """Return a histogram by powers of two, without gaps: lower bounds and counts. Numbers below 1 count as 0.

    >>> histogram([0.2, 1, 2, 3, 9])
    ((0, 1), (1, 1), (2, 2), (4, 0), (8, 1))
    """
    bins = Counter(int(number).bit_length() for number in numbers)
    if not bins:
        return ()
    return tuple((2**bits // 2, bins[bits]) for bits in range(min(bins), max(bins) + 1))
