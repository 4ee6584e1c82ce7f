"""Find the files of a model: a folder, or a repository in the Hugging Face cache or on the hub."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from waygraph.core.errors import WeightsMissing

#: Suffixes of files that vectors depend on.
_RELEVANT_SUFFIXES = frozenset({".json", ".safetensors", ".txt", ".model", ".jinja"})

#: Prefix of encoder names for models that sentence-transformers loads: `st:NAME`.
SENTENCE_TRANSFORMERS = "st:"


def find_model(name: str, *, hint: str, allow_hub: bool = True) -> Path:
    """Return the folder of a model.

    Parameters
    ----------
    name
        A folder, or a repository that is looked up in the Hugging Face cache, then on the hub.
    hint
        Hint of the error.
    allow_hub
        Whether the hub may be used.

    Returns
    -------
    Path
        Folder with the files.

    Raises
    ------
    WeightsMissing
        If there is no such folder and no such repository.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    import httpx  # noqa: PLC0415 - only when an encoder is created
    from huggingface_hub import constants, snapshot_download  # noqa: PLC0415
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        offline = constants.is_offline_mode() or not allow_hub
        patterns = [f"*{suffix}" for suffix in sorted(_RELEVANT_SUFFIXES)]
        return Path(snapshot_download(name, allow_patterns=patterns, local_files_only=offline))
    except HFValidationError as error:
        raise WeightsMissing(f"'{name}' is neither a folder nor the name of a repository.", hint=hint) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, httpx.HTTPError, OSError) as error:
        reason = "it is not in the cache, and the hub is switched off" if offline else type(error).__name__
        raise WeightsMissing(f"{name} cannot be loaded: {reason}.", hint=hint) from error


def digest_of(folder: Path) -> str:
    """Return SHA-256 (hex) over names and contents of the files that vectors depend on."""
    files = sorted(file for file in folder.rglob("*") if file.suffix in _RELEVANT_SUFFIXES and file.is_file())
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            content = hashlib.file_digest(opened, "sha256").hexdigest()
        whole.update(f"{file.relative_to(folder).as_posix()} {content}\n".encode())
    return whole.hexdigest()


def public_name(name: str) -> str:
    """Return the encoder name to store in maps. Of a folder only the last part is kept, to disclose no local paths.

    >>> public_name("st:/home/me/models/colqwen"), public_name("st:org/colqwen"), public_name("text")
    ('st:colqwen', 'st:org/colqwen', 'text')
    """
    path = name.removeprefix(SENTENCE_TRANSFORMERS)
    is_repository = re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", path) and not Path(path).is_dir()
    return name if path == name or is_repository else SENTENCE_TRANSFORMERS + Path(path).name
