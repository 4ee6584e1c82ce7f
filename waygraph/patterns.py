r"""How are regular expressions run that users wrote? By RE2, in time linear in the text: none of them can hang a run.

RE2 knows no look-around and no back-references, which are what would cost exponential time; `\b` and `\w` know ASCII
letters only. https://github.com/google/re2/wiki/Syntax lists what it knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from waygraph.errors import InvalidInput

#: Longer ones are no rules that somebody wrote.
MAX_LENGTH = 5_000
_CACHED = 4_096


@dataclass(frozen=True, slots=True)
class Pattern:
    """A checked regular expression; make one with `compile_pattern`. Plain data, so it travels between processes."""

    source: str
    ignore_case: bool = True

    def search(self, text: str) -> str | None:
        """The first part of `text` that matches, or nothing.

        >>> compile_pattern("del(ete)?").search("Please DELETE this")
        'DELETE'
        """
        try:
            found = _compiled(self.source, self.ignore_case).search(text)
        except UnicodeEncodeError:
            # Half of a surrogate pair, which pages may say and UTF-8 cannot spell.
            found = _compiled(self.source, self.ignore_case).search(text.encode("utf-8", "replace").decode())
        return None if found is None else str(found.group(0))

    def __str__(self) -> str:
        return self.source


def compile_pattern(source: str, *, ignore_case: bool = True) -> Pattern:
    """Check a regular expression.

    Raises
    ------
    InvalidInput
        When it is none, too long, or one that RE2 cannot run in linear time and bounded memory.

    """
    if len(source) > MAX_LENGTH:
        raise InvalidInput(
            f"A regular expression has {len(source)} characters, more than {MAX_LENGTH}.", hint="Split it."
        )
    try:
        _compiled(source, ignore_case)
    except (ValueError, UnicodeEncodeError) as error:
        raise InvalidInput(
            f"'{source}' is not a regular expression that waygraph runs: {error}.",
            hint="Look-around and back-references are left out, since they could hang a run.",
        ) from error
    return Pattern(source, ignore_case)


@lru_cache(_CACHED)
def _compiled(source: str, ignore_case: bool) -> Any:  # noqa: ANN401 - the library ships no types
    import re2  # noqa: PLC0415 - the front door works without it

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(source, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(text) from error
