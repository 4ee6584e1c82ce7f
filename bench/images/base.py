"""A base image made by debootstrap, in place of the one that the Dockerfile pulls.

The same Debian release, with Debian's own Python. A virtual environment at /usr/local gives that Python the layout of
the official image: commands in /usr/local/bin, packages in /usr/local/lib/python3.11/site-packages.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from bench.images.containers import Containers

RELEASE = "bookworm"
_PACKAGES = ("ca-certificates", "netbase", "tzdata", "python3.11", "python3.11-venv")
#: As in Debian's own images: caches of apt would be part of every layer that installs something.
_NO_CACHES = """Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Acquire::Languages "none";
APT::Keep-Downloaded-Packages "false";
"""


def make_base(tools: Containers, image: str) -> None:
    """Make the base image, unless it exists.

    Parameters
    ----------
    tools
        Where to put it.
    image
        Its name.
    """
    known = subprocess.run(["podman", "image", "exists", image], env=tools.environment, check=False)
    if known.returncode == 0:
        return
    root, archive = tools.folder / "base", tools.folder / "base.tar"
    shutil.rmtree(root, ignore_errors=True)
    # The folder for temporary files does not exist inside.
    clean = ("env", "--unset=TMPDIR", "DEBIAN_FRONTEND=noninteractive")
    tools.run(*clean, "debootstrap", "--variant=minbase", RELEASE, root, log=tools.folder / "debootstrap.log")
    sources = root / "etc/apt/sources.list"
    sources.write_text(_with_updates(sources.read_text()))
    (root / "etc/apt/apt.conf.d/90no-caches").write_text(_NO_CACHES)
    # With security updates, and dependencies resolved by apt, which debootstrap cannot do.
    inside = (*clean, "chroot", root)
    tools.run(*inside, "apt-get", "update")
    tools.run(*inside, "apt-get", "install", "--yes", "--no-install-recommends", *_PACKAGES)
    tools.run(*inside, "/usr/bin/python3.11", "-m", "venv", "/usr/local")
    for folder in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"):
        _empty(root / folder)
    tools.run("tar", "--create", f"--file={archive}", f"--directory={root}", "--exclude=./dev/*", ".")
    shutil.rmtree(root)
    changes = ["--change", "ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"]
    changes += ["--change", "ENV LANG=C.UTF-8", "--change", "CMD python3"]
    tools.run("podman", "import", *changes, archive, image)
    archive.unlink()


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _with_updates(sources: str) -> str:
    """Add updates and security updates to the list of sources that debootstrap leaves.

    >>> print(_with_updates("deb http://mirror.example/debian bookworm main"))
    deb http://mirror.example/debian bookworm main
    deb http://mirror.example/debian bookworm-updates main
    deb http://mirror.example/debian-security bookworm-security main
    <BLANKLINE>
    """
    mirror = sources.split()[1]
    return (
        f"deb {mirror} {RELEASE} main\n"
        f"deb {mirror} {RELEASE}-updates main\n"
        f"deb {mirror}-security {RELEASE}-security main\n"
    )
