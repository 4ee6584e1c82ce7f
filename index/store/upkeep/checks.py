"""Verification of a store against its hashes, and repair of what is damaged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from waygraph.core.errors import NewerSchema, NotFound, StoreError
from waygraph.index.store.backends.concurrency import concurrent_map
from waygraph.index.store.backends.failures import translate_errors
from waygraph.index.store.blobs import blob_path
from waygraph.index.store.layout import MANIFEST_FILE, head_path, version_folder
from waygraph.index.store.manifest import Head, Manifest
from waygraph.index.store.missing_heads import complete_versions, lost_versions, missing_head_message, rebuild_head
from waygraph.index.store.store import Store
from waygraph.index.store.upkeep.gc import deleting_blobs, do_nothing, readable_manifests


@dataclass(frozen=True, slots=True)
class StoreProblem:
    """A difference between a store and what was published.

    Attributes
    ----------
    site
        Key of the site.
    version
        Number of the version; None if the problem concerns the whole site.
    path
        Path of the file or folder in the store.
    what
        Description of the problem.
    remedy
        What `repair` did about it; empty: nothing yet.
    """

    site: str
    version: int | None
    path: str
    what: str
    remedy: str = ""


@dataclass(slots=True)
class VerifyReport:
    """What was checked, and the problems that were found.

    Attributes
    ----------
    sites
        Number of sites.
    versions
        Number of versions.
    blobs
        Number of blobs.
    problems
        The problems.
    """

    sites: int = 0
    versions: int = 0
    blobs: int = 0
    problems: list[StoreProblem] = field(default_factory=list)


def verify(store: Store, sites: Collection[str] | None = None, *, contents: bool = True) -> VerifyReport:
    """Read everything that is published and compare it with its hashes. Changes nothing.

    Parameters
    ----------
    store
        The store.
    sites
        Keys of the sites; None: all.
    contents
        Whether to read all blobs, too; otherwise only their existence is checked.

    Returns
    -------
    VerifyReport
        The problems.

    Raises
    ------
    NewerSchema
        If a newer waygraph wrote something, which is no damage.
    """
    report = VerifyReport()
    blobs: dict[str, tuple[str, int]] = {}
    for site in store.all_sites() if sites is None else sites:
        try:
            versions = sorted(store.read_head(site)[1].versions)
            missing = [] if versions else lost_versions(store, site)
        except NewerSchema:
            raise
        except StoreError as error:
            report.sites += 1
            report.problems.append(StoreProblem(site, None, head_path(site), error.message))
            continue
        if sites is not None and not versions and not missing:
            store.head(site)  # raises NotFound: it is not mapped
        report.sites += bool(versions or missing)
        if missing:
            report.problems.append(StoreProblem(site, None, head_path(site), missing_head_message(site, missing)))
        for version in versions:
            report.versions += 1
            for digest in _named_blobs(store, site, version, report):
                blobs.setdefault(digest, (site, version))
    problem_of = _content_problem if contents else _absence
    report.blobs = len(blobs)
    found = concurrent_map(lambda digest: problem_of(store, digest), blobs)
    for (digest, (site, version)), what in zip(blobs.items(), found, strict=True):
        if what:
            report.problems.append(StoreProblem(site, version, blob_path(digest), what))
    return report


def _named_blobs(store: Store, site: str, version: int, report: VerifyReport) -> set[str]:
    """Read all files of a version and return its blobs; if a file is damaged, add a problem and return none."""
    try:
        store.read(site, version)
        return store.blobs_of(site, version)
    except NewerSchema:
        raise
    except NotFound:
        return set()  # removed meanwhile
    except StoreError as error:
        report.problems.append(StoreProblem(site, version, version_folder(site, version), error.message))
        return set()


def _content_problem(store: Store, digest: str) -> str:
    try:
        store.blobs.get(digest)
    except (NotFound, StoreError) as error:
        return error.message
    return ""


def _absence(store: Store, digest: str) -> str:
    return "" if store.blobs.has(digest) else f"The store holds no blob '{digest}'."


def repair(
    store: Store,
    source: Store | None = None,
    sites: Collection[str] | None = None,
    *,
    before_drop: Callable[[Sequence[Manifest]], None] = do_nothing,
) -> VerifyReport:
    """Verify a store and repair what can be repaired.

    What `source` (a copy) holds undamaged is taken from there. Otherwise:

    - A `HEAD` that is damaged or missing is rebuilt from the versions that are intact.
    - A damaged version is withdrawn if there is another one; the newest intact one becomes the current one.
    - A damaged blob is deleted, so indexing the site again stores it. Until then its state has no screenshot.

    Parameters
    ----------
    store
        The store.
    source
        A copy of the store, or None.
    sites
        Keys of the sites; None: all.
    before_drop
        Called with the manifest of a version that is withdrawn next, unless the manifest is damaged: copies elsewhere
        are deleted first, as by `collect_garbage`.

    Returns
    -------
    VerifyReport
        The problems, each with its remedy.
    """
    report = verify(store, sites)
    with translate_errors(f"repair {store.location}"):
        report.problems = [_repaired(store, source, problem, before_drop) for problem in report.problems]
    return report


def _repaired(
    store: Store, source: Store | None, problem: StoreProblem, before_drop: Callable[[Sequence[Manifest]], None]
) -> StoreProblem:
    if problem.version is None:
        remedy = _rebuild_head(store, problem.site)
    elif problem.path.startswith("blobs/"):
        remedy = _repair_blob(store, source, problem.path.rpartition("/")[2])
    else:
        remedy = _repair_version(store, source, problem.site, problem.version, before_drop)
    return StoreProblem(problem.site, problem.version, problem.path, problem.what, remedy)


def _repair_blob(store: Store, source: Store | None, digest: str) -> str:
    if source is not None:
        try:
            content = source.blobs.get(digest)
        except (NotFound, StoreError):
            pass  # neither store has it intact
        else:
            store.commit.put(blob_path(digest), content)
            store.commit.persist([blob_path(digest)])
            return "taken from the other store"
    if not store.blobs.has(digest):
        return ""
    # Read again, under the claim: since the first check, a run may have stored it again.
    with deleting_blobs(store) as lease:
        if not _content_problem(store, digest):
            return "stored again meanwhile"
        store.commit.delete([blob_path(digest)], under=lease)
    return "deleted; index the site again"


def _repair_version(
    store: Store,
    source: Store | None,
    site: str,
    version: int,
    before_drop: Callable[[Sequence[Manifest]], None],
) -> str:
    if source is not None and _copy_version_from(store, source, site, version):
        return "taken from the other store"
    while True:
        raw, head = store.read_head(site)
        if version not in head.versions:
            return "withdrawn meanwhile"
        intact = [number for number in sorted(head.versions) if number != version and _is_intact(store, site, number)]
        if not intact:
            return ""
        before_drop(readable_manifests(store, site, [version]))
        current = intact[-1] if head.current == version else head.current
        left = {number: sha256 for number, sha256 in head.versions.items() if number != version}
        changed = Head(current=current, last=head.last, versions=left)
        if store.commit.compare_and_swap(head_path(site), raw, changed.to_bytes()):
            return f"withdrawn; version {current} is the current one"


def _copy_version_from(store: Store, source: Store, site: str, version: int) -> bool:
    """Copy the files of a version if the other store has exactly this version, undamaged."""
    _, head = store.read_head(site)
    try:
        source.read(site, version)
        files = source.version_files(site, version)
    except (NotFound, StoreError):
        return False
    if hashlib.sha256(files[MANIFEST_FILE]).hexdigest() != head.versions.get(version):
        return False
    store.write_version_files(site, version, files)
    return True


def _rebuild_head(store: Store, site: str) -> str:
    try:
        raw = store.commit.read_register(head_path(site))
    except OSError:
        return ""  # as the problem says: something else than a file is in its place, or it may not be read
    head = rebuild_head(store, site, complete_versions(store, site)).with_used_number(
        max(store.numbers(site), default=0)
    )
    if head.current is None or not store.commit.compare_and_swap(head_path(site), raw, head.to_bytes()):
        return ""
    return f"rebuilt from {len(head.versions)} version(s); version {head.current} is the current one"


def _is_intact(store: Store, site: str, number: int) -> bool:
    try:
        store.read(site, number)
    except (NotFound, StoreError):
        return False
    return True
