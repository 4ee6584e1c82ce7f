"""Where the task files of benchmarks are published, as far as that could be checked.

A pinned file has a SHA-256 that was computed from the file itself. Of the others only the address is known, or not even
that; their hashes are left open rather than guessed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskSource:
    """A published task file.

    Attributes
    ----------
    name
        Name of the benchmark.
    file
        Name under which the file is stored.
    page
        Page that describes it.
    url
        What is downloaded; empty: unknown.
    commit
        Commit or release that the URL names; empty: none.
    sha256
        Hash of the file; empty: it is not pinned.
    member
        Path of the file in the archive that the URL gives; empty: the URL gives the file.
    archive_sha256
        Hash of that archive.
    """

    name: str
    file: str
    page: str
    url: str = ""
    commit: str = ""
    sha256: str = ""
    member: str = ""
    archive_sha256: str = ""


#: The files of a release of a package index never change, unlike those of a branch.
_VERIFIED_WHEEL = (
    "https://files.pythonhosted.org/packages/d0/d6/f69571f12c96f7ae74335a0e48e165ed2bcedd981808e3fe3f64c70ac396/"
    "webarena_verified-1.2.3-py3-none-any.whl"
)

SOURCES = {
    source.name: source
    for source in (
        TaskSource(
            name="webarena",
            file="webarena.json",
            page="https://github.com/web-arena-x/webarena",
            url=(
                "https://raw.githubusercontent.com/web-arena-x/webarena/"
                "107677c8575b9e8773218ce92e60bef9215629d7/config_files/test.raw.json"
            ),
            commit="107677c8575b9e8773218ce92e60bef9215629d7",
        ),
        TaskSource(
            name="webarena-verified",
            file="webarena-verified.json",
            page="https://github.com/ServiceNow/webarena-verified",
            url=_VERIFIED_WHEEL,
            commit="1.2.3",
            sha256="d65275660814663375028e9017e1f929e3c38321041b125795e2713b52243d30",
            member="webarena_verified/assets/dataset/webarena-verified.json",
            archive_sha256="91a0297a096a343a13ff5e0ebc35c39b3d926b27c4d5a8a57c833681acbc6b7a",
        ),
        TaskSource(
            name="webchorearena",
            file="webchorearena.json",
            page="https://github.com/WebChoreArena/WebChoreArena",
            # The default branch: the hash says whether it still has the file that was checked (of commit e6122180).
            url=(
                "https://raw.githubusercontent.com/WebChoreArena/WebChoreArena/HEAD/"
                "AgentOccam/config_files/test_webchore.raw.json"
            ),
            sha256="0a045e46f3d36d7847c4846cd9595df8ac9672d62e36603454a068bb3ed3a702",
        ),
        TaskSource(
            name="online-mind2web",
            file="online-mind2web.json",
            page="https://huggingface.co/datasets/osunlp/Online-Mind2Web",
        ),
    )
}
