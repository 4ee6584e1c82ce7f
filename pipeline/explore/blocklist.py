"""Which elements does the user want left alone? Regular expressions per site, from a YAML file.

    sites:
      - host: "shop.example"          # glob over the site key
        block:
          - name: no comparing        # shown as the reason
            text: "compare"           # searched in the accessible name, any case
            href: "/compare/"         # searched in the resolved link target
            xpath: "^/html/body"      # searched in the full XPath
            role: "^link$"            # searched in the role

All expressions of one rule must match. Rules of every entry whose `host` matches apply.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from pipeline.browser.snapshot import Candidate, Snapshot
from pipeline.explore.policy import Refusal
from waygraph.errors import InvalidInput


class BlockRule(BaseModel):
    """One kind of element to leave alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    text: str | None = None
    href: str | None = None
    xpath: str | None = None
    role: str | None = None

    @field_validator("text", "href", "xpath", "role")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"'{pattern}' is not a regular expression: {error}") from error
        return pattern

    def matches(self, candidate: Candidate) -> bool:
        """Whether every expression of the rule is found; a rule without expressions matches nothing."""
        action = candidate.action
        pairs = (
            (self.text, action.name),
            (self.href, action.target),
            (self.xpath, action.xpath),
            (self.role, action.role),
        )
        checks = [re.search(pattern, value, re.IGNORECASE) for pattern, value in pairs if pattern is not None]
        return bool(checks) and all(checks)


class _Site(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str
    block: tuple[BlockRule, ...] = ()


class _RulesFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    sites: tuple[_Site, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockList:
    """The rules that apply to one site, as a policy."""

    rules: tuple[BlockRule, ...] = ()

    @classmethod
    def read(cls, path: Path | None, site: str) -> BlockList:
        """Rules of the file at `path` for `site`; none without a file.

        Raises
        ------
        InvalidInput
            When the file cannot be read, is not YAML, or holds something else than rules.
        """
        if path is None:
            return cls()
        try:
            parsed = _RulesFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
        except OSError as error:
            raise InvalidInput(f"The rules file '{path}' cannot be read: {error.strerror}.") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise InvalidInput(f"The rules file '{path}' is not YAML: {error}.") from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InvalidInput(
                f"The rules file '{path}' is wrong at {where or 'its top'}: {first['msg']}.",
                hint="See docs/explorer.md for the format.",
            ) from error
        return cls(tuple(rule for entry in parsed.sites if fnmatchcase(site, entry.host) for rule in entry.block))

    def refuse(self, candidate: Candidate, seen: Snapshot) -> Refusal | None:  # noqa: ARG002 - a Policy
        """Why an element must not be activated."""
        for rule in self.rules:
            if rule.matches(candidate):
                return Refusal("rule", rule.name)
        return None
