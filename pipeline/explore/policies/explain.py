"""Explanation of skipped elements for `--explain-skips` and `show --skipped`: the deciding rule, and what overrides it.

Works on plain rows as reports and manifests store them, so it can explain maps of any version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from waygraph.pipeline.browser.page.snapshot import Candidate
from waygraph.pipeline.explore.policies.policy import Refusal
from waygraph.pipeline.explore.records.capture import Skip

OutcomeKind = Literal["done", "skipped", "failed", "pending"]

#: What users can do about a reason. Reasons of `_ALLOWABLE` and the user's own rules have no entry here.
_REMEDIES = {
    "external": "Another host. To map it too: --scope domain, or --scope-host HOST.",
    "scheme": "Not a web page.",
    "robots": "The site's robots.txt forbids it. On a site of your own: --no-robots.",
    "form_post": "Submitting the form may change data; no rule allows it.",
    "disabled": "The element takes no input.",
    "covered": "Something lies over the whole page. The element is acted on in states where it was closed.",
    "alike": "Others of its kind on this page brought nothing. To try all of them: explore.alike_budget: 0.",
    "download": "Files are not mapped.",
    "dead_link": "The server answered that this page does not exist, so further links to it are not followed.",
    "same_form": "The search form was submitted once, and its page of results stands for all of them.",
    "by_address": "Something lies over the link, so its address was loaded in place of a click.",
    "varies": "It led to another page when it was followed again, so no path uses it.",
    "second_tab": "One action opened several tabs; the first one was followed.",
    "max_activations": "The limit of actions was reached.",
    "max_states": "The limit of states was reached: --max-states.",
}
#: Reasons that an `allow` rule lifts.
_ALLOWABLE = frozenset({"hazard", "form_get"})
_ELEMENT = re.compile(r'^(?P<kind>\w+) (?P<role>\S*) "(?P<name>.*)"(?: \(.*\))?$', re.DOTALL)


@dataclass(frozen=True, slots=True)
class ExplainedElement:
    """Outcome of one element or URL, with the rule that decided.

    Attributes
    ----------
    kind
        `skipped` on purpose, `failed` when tried, still `pending`, or `done` when it worked.
    reason
        Code of the reason.
    node_id
        State that shows the element.
    url
        URL of that state.
    element
        The action on the element, such as `click link "Log out"`.
    detail
        The part of the element that decided.
    rule
        The rule that decided; empty if none can be named.
    target
        Link target of the element.
    xpath
        Full XPath of the element.
    """

    kind: OutcomeKind
    reason: str
    node_id: str
    url: str
    element: str
    detail: str = ""
    rule: str = ""
    target: str = ""
    xpath: str = ""

    @property
    def remedy(self) -> str:
        """What users can do to have the element acted on; empty if nothing is known."""
        if self.reason in _ALLOWABLE:
            return f"To act on it: allow: [{rule_for(self)}]"
        if self.reason == "rule":
            return "Your own rule."
        return _REMEDIES.get(self.reason, "")

    def to_json(self) -> dict[str, Any]:
        """Return a plain JSON object with every field and the remedy."""
        return {**asdict(self), "remedy": self.remedy}


def refusal_to_skip(node_id: str, candidate: Candidate, refusal: Refusal) -> Skip:
    """Return the record of an element that a policy refused."""
    action = candidate.action
    return Skip(
        node_id,
        refusal.reason,
        str(action),
        refusal.detail,
        rule=refusal.rule,
        target=action.target,
        xpath=action.xpath,
    )


def elements_of_report(report: Mapping[str, Any], urls: Mapping[str, str]) -> Iterator[ExplainedElement]:
    """Yield the elements that a report lists.

    Parameters
    ----------
    report
        Report of a manifest or of a run, with `skips`, `failures` and `pending` as lists of objects.
    urls
        URLs of the map's states, by id.

    Yields
    ------
    ExplainedElement
        Skipped elements first, then failed ones, then pending ones.
    """
    lists: tuple[tuple[OutcomeKind, str], ...] = (("skipped", "skips"), ("failed", "failures"), ("pending", "pending"))
    for kind, name in lists:
        rows = report.get(name, ())
        # Reports may hold a count in place of the list.
        if not isinstance(rows, str | int):
            yield from (_from_row(kind, row, urls) for row in rows if isinstance(row, Mapping))


def elements_of_table(rows: Iterable[Mapping[str, str]], urls: Mapping[str, str]) -> Iterator[ExplainedElement]:
    """Yield the elements of a table of element outcomes.

    Parameters
    ----------
    rows
        Rows of the table, see `waygraph.index.store.element_outcomes`.
    urls
        URLs of the map's states, by id.

    Yields
    ------
    ExplainedElement
        One for each row.
    """
    kinds: dict[str, OutcomeKind] = {"done": "done", "skipped": "skipped", "failed": "failed", "pending": "pending"}
    yield from (_from_row(kinds[row["status"]], {**row, "node_id": row["state"]}, urls) for row in rows)


def _from_row(kind: OutcomeKind, row: Mapping[str, Any], urls: Mapping[str, str]) -> ExplainedElement:
    node_id = str(row.get("node_id", ""))
    return ExplainedElement(
        kind=kind,
        reason=str(row.get("reason", "")),
        node_id=node_id,
        url=urls.get(node_id, ""),
        element=str(row.get("element") or row.get("action") or ""),
        detail=str(row.get("detail", "")),
        rule=str(row.get("rule", "")),
        target=str(row.get("target", "")),
        xpath=str(row.get("xpath", "")),
    )


def select_elements(
    rows: Iterable[ExplainedElement], *, kinds: Iterable[OutcomeKind] = (), reasons: Iterable[str] = ()
) -> Iterator[ExplainedElement]:
    """Yield the elements of the given kinds and reasons; an empty selection means all."""
    wanted_kinds, wanted_reasons = frozenset(kinds), frozenset(reasons)
    for row in rows:
        if (not wanted_kinds or row.kind in wanted_kinds) and (not wanted_reasons or row.reason in wanted_reasons):
            yield row


def rule_for(outcome: ExplainedElement) -> str:
    """Return a rule for a rules file, in one line of YAML, that matches this element.

    It matches by name, else by target, else by XPath. If the lexicon refused the target, the rule matches the target:
    the network guard sees nothing else.
    """
    match = _ELEMENT.match(outcome.element)
    name = match["name"] if match else ""
    by_target = bool(outcome.target) and outcome.rule.endswith("addresses")
    if name and not by_target:
        expression = f"text: {_quoted(f'^{re.escape(name)}$')}"
    elif outcome.target:
        expression = f"href: {_quoted(f'^{re.escape(outcome.target)}$')}"
    else:
        expression = f"xpath: {_quoted(f'^{re.escape(outcome.xpath)}$')}"
    return f"{{name: {_quoted(name or outcome.reason)}, {expression}}}"


def _quoted(text: str) -> str:
    # The only escape of a YAML string in single quotes is the doubled quote.
    return "'" + " ".join(text.split()).replace("'", "''") + "'"
