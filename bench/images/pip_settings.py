"""Let pip inside of a build use this machine's configuration of pip: indexes, certificates, local folders of wheels."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Options of pip whose values may name files and folders of this machine.
_PATHS = ("cert", "constraint", "find-links", "index-url", "extra-index-url", "client-cert")


def pip_mounts(folder: Path) -> list[str]:
    """Write a pip.conf for builds into `folder`; return the volumes to mount, as `--volume` takes them.

    The system's configuration comes first and the environment's last, as in pip itself.
    """
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    options: dict[str, str] = {}
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        key, _, value = line.partition("=")
        name = key.replace(":env:.", "").rpartition(".")[2]
        options[name] = shlex.split(value)[0]
    file = folder / "pip.conf"
    file.write_text("[global]\n" + "".join(f"{name} = {value}\n" for name, value in options.items()))
    paths = {path for name in _PATHS for word in options.get(name, "").split() for path in _local(word)}
    if certificates := os.environ.get("SSL_CERT_FILE"):
        paths.add(Path(certificates))
    return [f"{file}:/etc/pip.conf:ro", *sorted(f"{path}:{path}:ro" for path in paths if path.exists())]


def _local(word: str) -> list[Path]:
    """Return the local path that an option names; none for URLs of servers."""
    parts = urlsplit(word)
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        # An index of folders links to files that usually lie beside it.
        return [path.parent if path.name == "simple" else path]
    return [Path(word)] if word.startswith("/") else []
