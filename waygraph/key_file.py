"""How are API keys kept? A JSON file with a digest of each key, its sites and its rate; never with a key."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from waygraph.errors import InvalidInput, NotFound

#: Begins every key, so that one that leaked is recognised for what it is.
PREFIX = "wg_"


def digest_of(key: str) -> str:
    """SHA-256 (hex) of a key. Keys are random and long: nothing slower is needed to keep them from being guessed."""
    return hashlib.sha256(key.encode()).hexdigest()


class KeyEntry(BaseModel):
    """One key."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: str = Field(min_length=1, max_length=100)
    """Whose it is; shown in logs."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    sites: tuple[str, ...] | None = None
    """Keys of the sites it may ask for; absent: all."""
    rate_per_second: float = Field(0.0, ge=0)
    """Requests a second; 0: the service's default."""


class KeyFile(BaseModel):
    """All keys of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: tuple[KeyEntry, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file (OSError, ValueError or ValidationError when it is none)."""
        return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path) -> None:
        """Replace a file in one step; its owner alone can read it."""
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
        """The file with one more key, and that key, which nobody can read from it (InvalidInput: the name is taken)."""
        if any(entry.name == name for entry in self.keys):
            raise InvalidInput(
                f"There is a key named '{name}' already.", hint="Choose another name, or revoke it first."
            )
        key = PREFIX + secrets.token_urlsafe(32)
        entry = KeyEntry(name=name, sha256=digest_of(key), sites=sites, rate_per_second=rate_per_second)
        return KeyFile(keys=(*self.keys, entry)), key

    def without(self, name: str) -> KeyFile:
        """The file without a key (NotFound)."""
        left = tuple(entry for entry in self.keys if entry.name != name)
        if len(left) == len(self.keys):
            raise NotFound(f"There is no key named '{name}'.", hint="'waygraph keys list' shows their names.")
        return KeyFile(keys=left)
