"""Policy for the user's rules: elements named in a rules file are refused (`rule`), or acted on after all.

The rules file is YAML, with regular expressions per site. It is given by `--rules`; without it, the policy refuses
nothing.

    sites:
      - host: "shop.example"          # glob over the site key, or a placeholder of the file
        block:
          - name: no comparing        # shown as the reason
            text: "compare"           # searched in the accessible name, any case
            href: "/compare/"         # searched in the resolved link target
            xpath: "^/html/body"      # searched in the full XPath
            role: "^link$"            # searched in the role
        allow:
          - name: the order form      # refused by the lexicon otherwise
            text: "^order now$"

All expressions of a rule must match. The rules of every entry whose `host` matches apply. `block` overrides `allow`.
`allow` lifts refusals by the lexicon and of GET forms only, not those of scope, robots.txt or the network guard.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from waygraph.core.errors import InvalidInput
from waygraph.core.patterns import compile_pattern
from waygraph.core.site_patterns import matches_site
from waygraph.core.yaml_file import read_yaml_file
from waygraph.index.graph import Action
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.policies.policy import Refusal

_HINT = "docs/elements.md, section Rules, shows the format."
#: Explore settings that an entry of the same file may set for its site.
SITE_SETTINGS = ("depth", "max_states", "max_activations", "max_seconds", "max_bytes", "storage_state")


class ElementRule(BaseModel):
    """A rule that names elements by regular expressions, at least one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    text: str | None = None
    href: str | None = None
    xpath: str | None = None
    role: str | None = None

    @field_validator("text", "href", "xpath", "role")
    @classmethod
    def _check_pattern(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                compile_pattern(pattern)
            except InvalidInput as error:
                raise ValueError(f"{error.message} {error.hint}") from error
        return pattern

    @model_validator(mode="after")
    def _check_not_empty(self) -> ElementRule:
        if not any((self.text, self.href, self.xpath, self.role)):
            raise ValueError(f"the rule '{self.name}' has none of text, href, xpath and role")
        return self

    def matches(self, action: Action) -> bool:
        """Return whether every expression of the rule matches the element that an action is for."""
        pairs = (
            (self.text, action.name),
            (self.href, action.target),
            (self.xpath, action.xpath),
            (self.role, action.role),
        )
        return all(
            compile_pattern(pattern).search(value) is not None for pattern, value in pairs if pattern is not None
        )


class _SiteRules(BaseModel):
    """An entry of a rules file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str
    block: tuple[ElementRule, ...] = ()
    allow: tuple[ElementRule, ...] = ()
    reads: tuple[Any, ...] = ()
    """Requests that only read data; checked by `GuardRules.read`."""

    @model_validator(mode="before")
    @classmethod
    def _drop_settings(cls, entry: object) -> object:
        """Drop the keys that are settings; `waygraph.pipeline.jobs.sites.site_settings` checks them."""
        return {k: v for k, v in entry.items() if k not in SITE_SETTINGS} if isinstance(entry, dict) else entry


class _ElementRulesFile(BaseModel):
    """A rules file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    placeholders: dict[str, str] = {}
    sites: tuple[_SiteRules, ...] = ()


def _site_rules(path: Path, site: str) -> list[_SiteRules]:
    """Return the entries of the file at `path` that apply to a site."""
    file = read_yaml_file(path, _ElementRulesFile, what="rules file", hint=_HINT)
    return [entry for entry in file.sites if matches_site(site, entry.host, file.placeholders, path)]


def rules_digest(path: Path | None, site: str) -> str:
    """Return the SHA-256 (hex) of all rules of the file at `path` for a site; empty if there are none.

    Parameters
    ----------
    path
        The rules file; None for none.
    site
        Key of the site.

    Returns
    -------
    str
        Equal for equal rules, whatever other sites the file has rules for.

    Raises
    ------
    InvalidInput
        See `BlockList.read`.
    """
    if path is None:
        return ""
    entries = [entry.model_dump(mode="json", exclude={"host"}) for entry in _site_rules(path, site)]
    rules = [entry for entry in entries if any(entry.values())]
    return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest() if rules else ""


@dataclass(frozen=True, slots=True)
class BlockList:
    """The user's rules for one site.

    Attributes
    ----------
    block
        Rules for elements that are refused.
    allow
        Rules for elements that are acted on although the lexicon refuses them.
    """

    block: tuple[ElementRule, ...] = ()
    allow: tuple[ElementRule, ...] = ()

    @classmethod
    def read(cls, path: Path | None, site: str) -> BlockList:
        """Read the rules of the file at `path` for a site.

        Parameters
        ----------
        path
            The rules file; None for none.
        site
            Key of the site.

        Returns
        -------
        BlockList
            The rules of all entries that apply to the site, in order.

        Raises
        ------
        InvalidInput
            If the file cannot be read, is not YAML, or contains something else than rules.
        """
        if path is None:
            return cls()
        entries = _site_rules(path, site)
        return cls(
            tuple(rule for entry in entries for rule in entry.block),
            tuple(rule for entry in entries for rule in entry.allow),
        )

    def allows(self, candidate: Candidate) -> bool:
        """Return whether an `allow` rule names an element."""
        return any(rule.matches(candidate.action) for rule in self.allow)

    def allows_url(self, url: str) -> bool:
        """Return whether the `href` of an `allow` rule names a URL."""
        hrefs = (rule.href for rule in self.allow if rule.href is not None)
        return any(compile_pattern(href).search(url) is not None for href in hrefs)

    def refuse(self, candidate: Candidate, snapshot: Snapshot) -> Refusal | None:  # noqa: ARG002 - an ElementPolicy
        """Return why an element is not acted on."""
        for rule in self.block:
            if rule.matches(candidate.action):
                return Refusal("rule", rule.name, f"the user's rule '{rule.name}'")
        return None

    def refuse_url(self, url: str) -> Refusal | None:
        """Return why a document is not loaded, by the rules that have an `href` only."""
        for rule in self.block:
            has_href_only = rule.href is not None and rule.text is rule.xpath is rule.role is None
            if has_href_only and compile_pattern(rule.href or "").search(url) is not None:
                return Refusal("rule", rule.name, f"the user's rule '{rule.name}'")
        return None
