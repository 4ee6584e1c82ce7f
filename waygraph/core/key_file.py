"""The file of API keys: a JSON file with the digest, sites and rate of each key, but never a key itself."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from waygraph.core.errors import InvalidInput, NotFound

#: Prefix of every key, by which a leaked one is recognised as a waygraph key.
PREFIX = "wg_"
#: Fewest characters of a key, white space aside; shorter ones can be guessed over the network.
MIN_KEY_LENGTH = 16


def key_digest(key: str) -> str:
    """Return the SHA-256 of a key in hex. Keys have 256 random bits, so no slower hash is needed against guessing."""
    return hashlib.sha256(key.encode()).hexdigest()


def key_problem(key: str) -> str | None:
    """Return why a text cannot be an API key, or None.

    >>> key_problem(""), key_problem("secret"), key_problem("wg_" + 32 * "a")
    ('is empty', 'has 6 characters, fewer than 16', None)
    """
    length = len("".join(key.split()))
    if not length:
        return "is white space" if key else "is empty"
    if length < MIN_KEY_LENGTH:
        return f"has {length} characters, fewer than {MIN_KEY_LENGTH}"
    if key != key.strip() or not (key.isascii() and key.isprintable()):
        return "has characters that an Authorization header cannot carry"
    return None


class KeyEntry(BaseModel):
    """One key of a key file."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str = Field(min_length=1, max_length=100)
    """Name of the key's holder; shown in logs."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    sites: tuple[str, ...] | None = None
    """Keys of the sites that the key gives access to; absent: all sites."""
    rate_per_second: float = Field(0.0, ge=0)
    """Requests per second that the key may make; 0: the service's default."""

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        if self.sha256 == key_digest(""):
            raise ValueError(f"the key of '{self.name}' is empty")
        return self


class KeyFile(BaseModel):
    """The keys of a file. The file is replaced as a whole, never edited in place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: tuple[KeyEntry, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a key file; OSError if it cannot be read, ValueError if it is not a key file."""
        return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path) -> None:
        """Replace the file atomically, readable by its owner alone."""
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(self.model_dump(mode="json"), file, indent=2)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def with_key(self, name: str, sites: tuple[str, ...] | None, rate_per_second: float) -> tuple[KeyFile, str]:
        """Return the file with one more key, and that key, which cannot be recovered from the file.

        Parameters
        ----------
        name
            Name of the key's holder, unique in the file.
        sites
            Keys of the sites that the key gives access to; None: all sites.
        rate_per_second
            Requests per second that the key may make; 0: the service's default.

        Returns
        -------
        tuple of KeyFile and str
            The new file contents, and the key.

        Raises
        ------
        InvalidInput
            If the file has a key of that name.
        """
        if any(entry.name == name for entry in self.keys):
            raise InvalidInput(
                f"There is a key named '{name}' already.", hint="Choose another name, or revoke it first."
            )
        key = PREFIX + secrets.token_urlsafe(32)
        entry = KeyEntry(name=name, sha256=key_digest(key), sites=sites, rate_per_second=rate_per_second)
        return KeyFile(keys=(*self.keys, entry)), key

    def without(self, name: str) -> KeyFile:
        """Return the file without the key of that name; NotFound if it has none."""
        left = tuple(entry for entry in self.keys if entry.name != name)
        if len(left) == len(self.keys):
            raise NotFound(f"There is no key named '{name}'.", hint="'waygraph keys list' shows the names.")
        return KeyFile(keys=left)
