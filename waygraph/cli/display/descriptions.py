"""What `waygraph describe` prints: what it would take, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from waygraph.cli.output import clean, error_document, print_json, say

if TYPE_CHECKING:
    from waygraph.agents.describe.plan import DescriptionPlan, Estimate
    from waygraph.agents.describe.run import Asked
    from waygraph.core.errors import WaygraphError
    from waygraph.core.schemas import UsageModel


@dataclass(frozen=True)
class PlannedSite:
    """A site, what to ask about it, and what that may take."""

    site: str
    plan: DescriptionPlan
    expected: Estimate


@dataclass(frozen=True)
class DescribedSite:
    """What came of asking about a site; `version` is the one that was published, None if nothing was new."""

    planned: PlannedSite
    asked: Asked
    version: int | None


@dataclass(frozen=True)
class FailedSite:
    """A site whose map cannot be read, encoded or published, and why."""

    site: str
    error: WaygraphError


def print_plans(sites: Sequence[PlannedSite], *, asks: bool) -> None:
    """Print for each site what is described already and, if a model is asked, what that may take, with the sums."""
    for each in sites:
        kinds = sum(bool(subject.kind) for subject in each.plan.subjects)
        of_kinds = f", {kinds} of them about kinds of pages" if kinds else ""
        say(f"{each.site}: {each.plan.states} states, {len(each.plan.kept)} described and unchanged.")
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
    site, plan, asked = described.planned.site, described.planned.plan, described.asked
    for node_id, reason in asked.failures.items():
        say(f"  [{node_id[:8]}] is not described: {clean(reason, one_line=True)}")
    if described.version is None:
        say(f"{site}: nothing new to publish." if asked.stopped_by is None else f"{site}: nothing was published.")
    else:
        shown = len({*plan.kept, *asked.descriptions})
        say(f"{site}: version {described.version}, {shown} of {plan.states} states described.")


def print_failures(failed: Sequence[FailedSite]) -> None:
    """Print why sites are not described, with hints."""
    for each in failed:
        say(f"{each.site}: {each.error.message}")
        if each.error.hint:
            say(f"{each.site}: hint: {each.error.hint}")


def print_usage(described: Sequence[DescribedSite], spent: UsageModel, *, asked: bool) -> None:
    """Print what all calls took, or all replies of a file."""
    cost = "" if spent.cost is None else f", {spent.cost:.4f}"
    replayed = sum(each.asked.replayed for each in described)
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
    done = {each.planned.site: each for each in described}
    errors = {each.site: error_document(each.error) for each in failed}
    sites = []
    for each in planned:
        summary: dict[str, object] = {
            "site": each.site,
            "states": each.plan.states,
            "kept": len(each.plan.kept),
            "estimate": asdict(each.expected),
        }
        if (result := done.get(each.site)) is not None:
            summary |= {
                "version": result.version,
                "described": len(result.asked.descriptions),
                "replayed": result.asked.replayed,
                "failures": result.asked.failures,
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
