"""Names and numbers in a store that become parts of paths and URLs, and the types that validate them where it is read.

Whoever writes a manifest or a `HEAD` chooses these texts. No reader sees one that was not validated.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import AfterValidator, Field

from waygraph.core.errors import InvalidInput

#: Largest number of a version.
MAX_VERSION = 10**9
#: Ids of states and leads.
STATE_ID_PATTERN = "[0-9A-Za-z_.-]{1,64}"
#: SHA-256 in hex.
DIGEST_PATTERN = "[0-9a-f]{64}"

_STATE_ID = re.compile(STATE_ID_PATTERN)
_DIGEST = re.compile(DIGEST_PATTERN)
#: Tables of this waygraph, and those that a newer one adds.
_FILE_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}\.parquet")
_SITE_KEY = re.compile(
    r"(?:\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_-]|\.(?!\.)){0,251}[a-z0-9_]|[a-z0-9_])(?::\d{1,5})?", re.ASCII
)
#: Characters of a name that an error repeats.
_SHOWN = 200


def is_site_key(text: str) -> bool:
    """Return whether `text` is a site key (host and optional port, see `site_key`), and so a safe folder name."""
    return _SITE_KEY.fullmatch(text) is not None


def validate_site_key(site: str) -> str:
    """Return `site` if it is a site key; otherwise raise InvalidInput."""
    if not is_site_key(site):
        raise InvalidInput(f"'{site}' is not a site key.", hint="Site keys look like example.org or 127.0.0.1:8000.")
    return site


def is_digest(text: str) -> bool:
    """Return whether `text` is a SHA-256 in hex, as in the names of blobs."""
    return _DIGEST.fullmatch(text) is not None


def is_version_name(name: str) -> bool:
    """Return whether the name of a folder or claim is the number of a version, as waygraph writes it."""
    is_number = name.isascii() and name.isdecimal() and not name.startswith("0")
    return is_number and len(name) <= len(str(MAX_VERSION)) and int(name) <= MAX_VERSION


def _checked(test: Callable[[str], object], what: str) -> AfterValidator:
    def check(text: str) -> str:
        if not test(text):
            raise ValueError(f"{text[:_SHOWN]!a} is not {what}")
        return text

    return AfterValidator(check)


SiteKey = Annotated[str, _checked(is_site_key, "a site key")]
Digest = Annotated[str, _checked(is_digest, "a SHA-256")]
FileName = Annotated[str, _checked(_FILE_NAME.fullmatch, "the name of a file of a version")]
StateId = Annotated[str, _checked(_STATE_ID.fullmatch, "the id of a state")]
VersionNumber = Annotated[int, Field(ge=1, le=MAX_VERSION)]
Count = Annotated[int, Field(ge=0, le=2**53)]
