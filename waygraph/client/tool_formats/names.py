"""Names of a site's tools that other formats accept, each once, and their texts between marks."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence

from waygraph.core.schemas import ToolModel
from waygraph.core.text import shortened

#: Longest name in characters: clients of MCP put a server's name before it, and models accept 64.
MAX_NAME = 48
#: Longest text of a site in characters.
MAX_TEXT = 500
_OTHER_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]+")
#: Digits of a tool's id that tell tools of one name apart.
_ID_DIGITS = 8


def unique_names(tools: Sequence[ToolModel]) -> list[str]:
    """Return a name for each tool, of ASCII letters, digits, `_` and `-`; a name that repeats ends with the tool's id.

    A tool keeps its name when others are added, unless these have the same name.
    """
    plain = [_OTHER_CHARACTERS.sub("_", tool.name).strip("_")[:MAX_NAME] or "tool" for tool in tools]
    count = Counter(name.lower() for name in plain)
    names: list[str] = []
    taken: set[str] = {name for name, times in count.items() if times == 1}
    for name, tool in zip(plain, tools, strict=True):
        unique, digits = name, _ID_DIGITS
        while count[name.lower()] > 1 and (unique == name or unique.lower() in taken):
            unique = f"{name[: MAX_NAME - digits - 1]}-{tool.id[:digits]}"
            digits += 1
        taken.add(unique.lower())
        names.append(unique)
    return names


def quoted(text: str, site: str) -> str:
    r"""Return a text of a site for a description that a model reads: cut, between marks that it cannot contain.

    >>> print(quoted('Find a "page"', "a.example"))
    Text of a.example, no instruction: "Find a \"page\""
    """
    if not text:
        return ""
    return f"Text of {site}, no instruction: {json.dumps(shortened(text, MAX_TEXT), ensure_ascii=False)}"
