"""Read texts of user interfaces that packages describe in files: launchers, control panels, settings.

A `.desktop` file has a name, a comment and keywords ("Displays", "Choose how to use connected monitors and projectors",
"Screen;Resolution"), a GSettings schema a summary and a description of each setting. Both are what an interface calls a
thing, beside what a person would ask for.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from waygraph.pipeline.encode.text_counts import clean


@dataclass(frozen=True, slots=True)
class NamedThing:
    """A panel, program or setting: what it is called, and in which other words it is described."""

    name: str
    descriptions: tuple[str, ...]


def read_desktop(source: str) -> Iterator[NamedThing]:
    r"""Read a `.desktop` file.

    >>> list(read_desktop("[Desktop Entry]\nName=Mouse\nComment=Set the speed\nKeywords=Cursor;Wheel;\n"))
    [NamedThing(name='Mouse', descriptions=('Set the speed', 'Cursor, Wheel'))]
    """
    parser = configparser.RawConfigParser(strict=False, interpolation=None)
    try:
        parser.read_string(source)
    except configparser.Error:
        return
    if parser.has_section("Desktop Entry"):
        entry = parser["Desktop Entry"]
        words = [word.strip() for word in entry.get("Keywords", "").split(";") if word.strip()]
        found = (entry.get("Comment", ""), entry.get("GenericName", ""), ", ".join(words[:8]))
        descriptions = tuple(clean(text) for text in found if text)
        if name := clean(entry.get("Name", "")):
            yield NamedThing(name, descriptions)


def read_schema(source: str) -> Iterator[NamedThing]:
    """Read the settings of a `.gschema.xml` file.

    >>> list(read_schema("<schemalist><schema><key><summary>Font</summary><description>Name of the font of titles."
    ...                  "</description></key></schema></schemalist>"))
    [NamedThing(name='Font', descriptions=('Name of the font of titles.',))]
    """
    try:
        root = ET.fromstring(source)  # noqa: S314 - files of installed packages; nothing external is resolved
    except ET.ParseError:
        return
    for key in root.iter("key"):
        name, text = (clean(key.findtext(tag, "")) for tag in ("summary", "description"))
        if name and text and name.casefold() != text.casefold():
            yield NamedThing(name, (text,))
