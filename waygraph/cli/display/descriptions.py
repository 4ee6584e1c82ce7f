"""What `waygraph describe` prints: what it would take, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Self

from waygraph.cli.output import clean, error_document, print_json, say

if TYPE_CHECKING:
    from waygraph.agents.describe.plan import DescriptionPlan, Estimate
    from waygraph.agents.describe.run import Asked
    from waygraph.core.errors import WaygraphError
    from waygraph.core.schemas import UsageModel


@dataclass(frozen=True)
class PlannedSite:
    """Counts of what to ask about a site, without the requests: those of thousands of sites do not fit into memory.

    Attributes
    ----------
    site
        Key of the site.
    states
        Number of states that can be described.
    kept
        Number of those with a description that holds.
    kinds
        Number of the calls that are about kinds of pages.
    expected
        What asking may take.
    """

    site: str
    states: int
    kept: int
    kinds: int
    expected: Estimate

    @classmethod
    def of(cls, site: str, plan: DescriptionPlan, expected: Estimate) -> Self:
        """Return the counts of a plan."""
        kinds = sum(bool(subject.kind) for subject in plan.subjects)
        return cls(site, plan.states, len(plan.kept), kinds, expected)


@dataclass(frozen=True)
class DescribedSite:
    """Counts of what came of asking about a site.

    Attributes
    ----------
    site
        Key of the site.
    states
        Number of states that can be described.
    shown
        Number of those with a description now.
    described
        Number of new descriptions.
    replayed
        See `Asked`.
    failures
        See `Asked`.
    stopped_by
        See `Asked`.
    version
        Number of the version that was published; None if nothing was new.
    """

    site: str
    states: int
    shown: int
    described: int
    replayed: int
    failures: Mapping[str, str]
    stopped_by: WaygraphError | None
    version: int | None

    @classmethod
    def of(cls, site: str, plan: DescriptionPlan, asked: Asked, version: int | None) -> Self:
        """Return the counts of what came of a plan."""
        shown = len({*plan.kept, *asked.descriptions})
        new, failures = len(asked.descriptions), asked.failures
        return cls(site, plan.states, shown, new, asked.replayed, failures, asked.stopped_by, version)


@dataclass(frozen=True)
class FailedSite:
    """A site whose map cannot be read, encoded or published, and why."""

    site: str
    error: WaygraphError


def print_plans(sites: Sequence[PlannedSite], *, asks: bool) -> None:
    """Print for each site what is described already and, if a model is asked, what that may take, with the sums."""
    for each in sites:
        of_kinds = f", {each.kinds} of them about kinds of pages" if each.kinds else ""
        say(f"{each.site}: {each.states} states, {each.kept} described and unchanged.")
        if asks:
            say(f"{each.expected.calls} calls{of_kinds}: {_taken(each.expected)}.")
    if asks and len(sites) > 1:
        expected = [each.expected for each in sites]
        say(f"Together {sum(each.expected.calls for each in sites)} calls: {_taken(*expected)}.")


def _taken(*expected: Estimate) -> str:
    costs = [each.cost for each in expected if each.cost is not None]
    cost = f"about {sum(costs):.2f}" if len(costs) == len(expected) else "no prices are configured"
    return (
        f"about {sum(each.input_tokens for each in expected):,} tokens of input and "
        f"{sum(each.output_tokens for each in expected):,} of output; price: {cost}"
    )


def print_result(described: DescribedSite) -> None:
    """Print the pages of a site without a description, and the version that was published."""
    site = described.site
    for node_id, reason in described.failures.items():
        say(f"  [{node_id[:8]}] is not described: {clean(reason, one_line=True)}")
    if described.version is None:
        say(f"{site}: nothing new to publish." if described.stopped_by is None else f"{site}: nothing was published.")
    else:
        say(f"{site}: version {described.version}, {described.shown} of {described.states} states described.")


def print_failures(failed: Sequence[FailedSite]) -> None:
    """Print why sites are not described, with hints."""
    for each in failed:
        say(f"{each.site}: {each.error.message}")
        if each.error.hint:
            say(f"{each.site}: hint: {each.error.hint}")


def print_usage(described: Sequence[DescribedSite], spent: UsageModel, *, asked: bool) -> None:
    """Print what all calls took, or all replies of a file."""
    cost = "" if spent.cost is None else f", {spent.cost:.4f}"
    replayed = sum(each.replayed for each in described)
    again = f" {replayed} replies were there already." if replayed else ""
    what = "calls" if asked else "replies"
    say(f"{spent.calls} {what}, {spent.input_tokens:,} tokens in, {spent.output_tokens:,} out{cost}.{again}")


def print_as_json(
    planned: Sequence[PlannedSite],
    described: Sequence[DescribedSite],
    failed: Sequence[FailedSite],
    spent: UsageModel | None,
    error: WaygraphError | None,
) -> None:
    """Print plans, what came of them, sites that failed, what it took, and the error of it, as one JSON document."""
    done = {each.site: each for each in described}
    errors = {each.site: error_document(each.error) for each in failed}
    sites = []
    for each in planned:
        summary: dict[str, object] = {
            "site": each.site,
            "states": each.states,
            "kept": each.kept,
            "estimate": asdict(each.expected),
        }
        if (result := done.get(each.site)) is not None:
            summary |= {
                "version": result.version,
                "described": result.described,
                "replayed": result.replayed,
                "failures": result.failures,
            }
        if each.site in errors:
            summary["error"] = errors.pop(each.site)
        sites.append(summary)
    sites += [{"site": site, "error": reason} for site, reason in errors.items()]  # not even planned
    document: dict[str, object] = {"sites": sites}
    if spent is not None:
        document["usage"] = spent.model_dump()
    if error is not None:
        document["error"] = error_document(error)
    print_json(document)
