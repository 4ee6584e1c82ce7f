"""Why was an element left alone, and which rule would change that? What `--explain-skips` and `show --skipped` print.

Works on plain rows, as manifests and reports hold them, so that it explains the maps of any version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pipeline.browser.snapshot import Candidate
from pipeline.explore.capture import Skip
from pipeline.explore.policy import Refusal

Kind = Literal["done", "skipped", "failed", "pending"]

#: What a user can do about a reason; the lexicon's and the user's own get a rule to write instead.
_REMEDIES = {
    "external": "Another host. To map it too: --scope domain, or --scope-host HOST.",
    "scheme": "No web page.",
    "robots": "The site asks robots not to. On a site of your own: --no-robots.",
    "form_post": "Submitting changes something; no rule allows it.",
    "disabled": "The element takes no input.",
    "covered": "Something lies over the whole page. Where it was closed, the element is acted on.",
    "alike": "Others of its list brought nothing. To try all of them: explore.alike_budget: 0.",
    "download": "Files are not mapped.",
    "second_tab": "One action opened several tabs; the first one was followed.",
    "max_activations": "The limit of actions was reached.",
    "max_states": "The limit of states was reached: --max-states.",
}
#: Reasons that an `allow` rule lifts.
_ALLOWABLE = frozenset({"hazard", "form_get"})
_ELEMENT = re.compile(r'^(?P<kind>\w+) (?P<role>\S*) "(?P<name>.*)"(?: \(.*\))?$', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one element or URL.

    Attributes
    ----------
    kind : `skipped` on purpose, `failed` when tried, still `pending`, or `done` when it worked.
    node_id, url : the state that shows it.
    element : the action on it, such as `click link "Log out"`.
    rule : which rule decided; empty where there is none to name.
    """

    kind: Kind
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
        """What a user who wants it otherwise can do; empty when nothing is known."""
        if self.reason in _ALLOWABLE:
            return f"To act on it: allow: [{rule_for(self)}]"
        if self.reason == "rule":
            return "Your own rule."
        return _REMEDIES.get(self.reason, "")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON object with every field and the remedy."""
        return {**asdict(self), "remedy": self.remedy}


def refused(node_id: str, candidate: Candidate, refusal: Refusal) -> Skip:
    """What is recorded of an element that a policy refused."""
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


def outcomes(report: Mapping[str, Any], urls: Mapping[str, str]) -> Iterator[Outcome]:
    """The outcomes that a report lists.

    Parameters
    ----------
    report : of a manifest or of a run, with `skips`, `failures` and `pending` as lists of objects.
    urls : of the map's states, by id.
    """
    lists: tuple[tuple[Kind, str], ...] = (("skipped", "skips"), ("failed", "failures"), ("pending", "pending"))
    for kind, name in lists:
        rows = report.get(name, ())
        if not isinstance(rows, str | int):
            yield from (_outcome(kind, row, urls) for row in rows if isinstance(row, Mapping))


def tabled(rows: Iterable[Mapping[str, str]], urls: Mapping[str, str]) -> Iterator[Outcome]:
    """The outcomes that a table of fates (`index.store.fates`) holds; `urls` of the map's states, by id."""
    kinds: dict[str, Kind] = {"done": "done", "skipped": "skipped", "failed": "failed", "pending": "pending"}
    yield from (_outcome(kinds[row["status"]], {**row, "node_id": row["state"]}, urls) for row in rows)


def _outcome(kind: Kind, row: Mapping[str, Any], urls: Mapping[str, str]) -> Outcome:
    node_id = str(row.get("node_id", ""))
    return Outcome(
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


def choose(rows: Iterable[Outcome], *, kinds: Iterable[Kind] = (), reasons: Iterable[str] = ()) -> Iterator[Outcome]:
    """Those of the named kinds and reasons; no name means all."""
    wanted_kinds, wanted_reasons = frozenset(kinds), frozenset(reasons)
    for row in rows:
        if (not wanted_kinds or row.kind in wanted_kinds) and (not wanted_reasons or row.reason in wanted_reasons):
            yield row


def rule_for(outcome: Outcome) -> str:
    """A rule of a rules file, in one line of YAML, that names this element: by name, else by address, else by place.

    What the lexicon knows by its address needs that in the rule: the address alone is what the guard sees.
    """
    said = _ELEMENT.match(outcome.element)
    name = said["name"] if said else ""
    by_address = bool(outcome.target) and outcome.rule.endswith("addresses")
    if name and not by_address:
        fits = f"text: {_quoted(f'^{re.escape(name)}$')}"
    elif outcome.target:
        fits = f"href: {_quoted(f'^{re.escape(outcome.target)}$')}"
    else:
        fits = f"xpath: {_quoted(f'^{re.escape(outcome.xpath)}$')}"
    return f"{{name: {_quoted(name or outcome.reason)}, {fits}}}"


def _quoted(text: str) -> str:
    # A YAML string in single quotes knows one escape: the quote itself.
    return "'" + " ".join(text.split()).replace("'", "''") + "'"
