"""Where is the model of a name? A folder, or a repository in the Hugging Face cache or on the hub."""

from __future__ import annotations

import hashlib
from pathlib import Path

from waygraph.errors import WeightsMissing

#: Files of a model that vectors depend on; texts about it are not among them.
_WEIGHTY = frozenset({".json", ".safetensors", ".txt", ".model", ".jinja"})


def find_model(name: str, *, hint: str, allow_hub: bool = True) -> Path:
    """The folder `name`, or the snapshot of a repository of that name: from the Hugging Face cache, else from the hub.

    Raises
    ------
    WeightsMissing
        When there is neither.

    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    import httpx  # noqa: PLC0415 - only when an encoder is created
    from huggingface_hub import constants, snapshot_download  # noqa: PLC0415
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        offline = constants.is_offline_mode() or not allow_hub
        patterns = [f"*{suffix}" for suffix in sorted(_WEIGHTY)]
        return Path(snapshot_download(name, allow_patterns=patterns, local_files_only=offline))
    except HFValidationError as error:
        raise WeightsMissing(f"'{name}' is neither a folder nor the name of a repository.", hint=hint) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, httpx.HTTPError, OSError) as error:
        reason = "it is not in the cache, and the hub is switched off" if offline else type(error).__name__
        raise WeightsMissing(f"{name} cannot be loaded: {reason}.", hint=hint) from error


def digest_of(folder: Path) -> str:
    """SHA-256 (hex) over names and contents of the files of a model that vectors depend on."""
    files = sorted(file for file in folder.rglob("*") if file.suffix in _WEIGHTY and file.is_file())
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            content = hashlib.file_digest(opened, "sha256").hexdigest()
        whole.update(f"{file.relative_to(folder).as_posix()} {content}\n".encode())
    return whole.hexdigest()
