r"""Regular expressions from users, run by RE2 in time linear in the text, so that none of them can hang a run.

RE2 has no look-around and no back-references, which need exponential time in the worst case; `\b` and `\w` know ASCII
letters only. The syntax: https://github.com/google/re2/wiki/Syntax
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from waygraph.core.errors import InvalidInput

#: Longest expression in characters; a rule written by hand is shorter.
MAX_LENGTH = 5_000
#: Compiled expressions that are kept.
_CACHED = 4_096


@dataclass(frozen=True, slots=True)
class Pattern:
    """A validated regular expression, created by `compile_pattern`. Plain data, so it can be sent between processes."""

    source: str
    ignore_case: bool = True

    def search(self, text: str) -> str | None:
        """Return the first part of `text` that matches, or None.

        >>> compile_pattern("del(ete)?").search("Please DELETE this")
        'DELETE'
        """
        try:
            match = _compiled(self.source, self.ignore_case).search(text)
        except UnicodeEncodeError:
            # A lone surrogate, which page text may contain and UTF-8 cannot encode.
            match = _compiled(self.source, self.ignore_case).search(text.encode("utf-8", "replace").decode())
        return None if match is None else str(match.group(0))

    def __str__(self) -> str:
        return self.source


def compile_pattern(source: str, *, ignore_case: bool = True) -> Pattern:
    """Validate a regular expression.

    Parameters
    ----------
    source
        The expression, in the syntax of RE2.
    ignore_case
        Whether the expression matches upper and lower case alike.

    Returns
    -------
    Pattern
        The expression, ready to search.

    Raises
    ------
    InvalidInput
        If it is malformed, too long, or RE2 cannot run it in linear time and bounded memory.
    """
    if len(source) > MAX_LENGTH:
        raise InvalidInput(
            f"A regular expression has {len(source)} characters; the limit is {MAX_LENGTH}.", hint="Split it."
        )
    try:
        _compiled(source, ignore_case)
    except (ValueError, UnicodeEncodeError) as error:
        raise InvalidInput(
            f"'{source}' is not a regular expression that waygraph supports: {error}.",
            hint="Look-around and back-references are not supported, since they could hang a run.",
        ) from error
    return Pattern(source, ignore_case)


@lru_cache(_CACHED)
def _compiled(source: str, ignore_case: bool) -> Any:  # noqa: ANN401 - the library ships no types
    import re2  # noqa: PLC0415 - part of the `index` extra, which the CLI's front door does not need

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(source, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(text) from error
