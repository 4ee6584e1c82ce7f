"""Is everything in a store what was published, and what can be done about what is not?"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field

from index.store.blobs import blob_path
from index.store.concurrency import concurrently
from index.store.gc import deleting_blobs
from index.store.layout import MANIFEST, explained, head_path, version_folder
from index.store.lost_heads import finished, head_of, lost, problem_of
from index.store.manifest import Head
from index.store.store import Store
from waygraph.errors import NewerSchema, NotFound, StoreError


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it was published.

    Attributes
    ----------
    version : None when it concerns the whole site.
    path : in the store.
    what : in words.
    remedy : what `repair` did about it; empty: nothing, so far.

    """

    site: str
    version: int | None
    path: str
    what: str
    remedy: str = ""


@dataclass(slots=True)
class Checked:
    """What was looked at, and what is wrong with it."""

    sites: int = 0
    versions: int = 0
    blobs: int = 0
    problems: list[Problem] = field(default_factory=list)


def verify(store: Store, sites: Collection[str] | None = None, *, contents: bool = True) -> Checked:
    """Read everything that is published and compare it with its hashes. Changes nothing.

    Parameters
    ----------
    sites : keys; None: all.
    contents : also read all blobs; otherwise only whether they are there.

    Raises
    ------
    NewerSchema
        When a newer waygraph wrote something: that is no damage.

    """
    checked = Checked()
    blobs: dict[str, tuple[str, int]] = {}
    for site in store.all_sites() if sites is None else sites:
        try:
            versions = sorted(store.read_head(site)[1].versions)
            missing = [] if versions else lost(store, site)
        except NewerSchema:
            raise
        except StoreError as error:
            checked.sites += 1
            checked.problems.append(Problem(site, None, head_path(site), error.message))
            continue
        if sites is not None and not versions and not missing:
            store.head(site)  # says that it is not mapped
        checked.sites += bool(versions or missing)
        if missing:
            checked.problems.append(Problem(site, None, head_path(site), problem_of(site, missing)))
        for version in versions:
            checked.versions += 1
            for digest in _named_by(store, site, version, checked):
                blobs.setdefault(digest, (site, version))
    look = _content_problem if contents else _absence
    checked.blobs = len(blobs)
    found = concurrently(lambda digest: look(store, digest), blobs)
    for (digest, (site, version)), what in zip(blobs.items(), found, strict=True):
        if what:
            checked.problems.append(Problem(site, version, blob_path(digest), what))
    return checked


def _named_by(store: Store, site: str, version: int, checked: Checked) -> set[str]:
    """Blobs of a version, all of whose files are read; nothing, and a problem, when one of them is damaged."""
    try:
        store.read(site, version)
        return store.blobs_of(site, version)
    except NewerSchema:
        raise
    except NotFound:
        return set()  # removed meanwhile
    except StoreError as error:
        checked.problems.append(Problem(site, version, version_folder(site, version), error.message))
        return set()


def _content_problem(store: Store, digest: str) -> str:
    try:
        store.blobs.get(digest)
    except (NotFound, StoreError) as error:
        return error.message
    return ""


def _absence(store: Store, digest: str) -> str:
    return "" if store.blobs.has(digest) else f"The store holds no blob '{digest}'."


def repair(store: Store, source: Store | None = None, sites: Collection[str] | None = None) -> Checked:
    """`verify`, and mend what can be mended; every problem comes back with its remedy.

    What `source` (a copy) holds undamaged is taken from there. What it does not:

    - A `HEAD` that is damaged or missing is written anew from the versions that are whole.
    - A damaged version is withdrawn when there is another one; the newest whole one becomes the current one.
    - A damaged blob is deleted, so that indexing the site again stores it anew: until then its state has no screenshot.
    """
    checked = verify(store, sites)
    with explained(f"repair {store.location}"):
        checked.problems = [_repaired(store, source, problem) for problem in checked.problems]
    return checked


def _repaired(store: Store, source: Store | None, problem: Problem) -> Problem:
    if problem.version is None:
        remedy = _rebuild_head(store, problem.site)
    elif problem.path.startswith("blobs/"):
        remedy = _mend_blob(store, source, problem.path.rpartition("/")[2])
    else:
        remedy = _mend_version(store, source, problem.site, problem.version)
    return Problem(problem.site, problem.version, problem.path, problem.what, remedy)


def _mend_blob(store: Store, source: Store | None, digest: str) -> str:
    if source is not None:
        try:
            content = source.blobs.get(digest)
        except (NotFound, StoreError):
            pass  # neither store has it whole
        else:
            store.commit.put(blob_path(digest), content)
            store.commit.persist([blob_path(digest)])
            return "taken from the other store"
    if not store.blobs.has(digest):
        return ""
    # Once more, and held: it was read long ago, and a run may have stored it anew since.
    with deleting_blobs(store) as lease:
        if not _content_problem(store, digest):
            return "stored anew meanwhile"
        store.commit.delete([blob_path(digest)], under=lease)
    return "deleted; index the site again"


def _mend_version(store: Store, source: Store | None, site: str, version: int) -> str:
    if source is not None and _take_version(store, source, site, version):
        return "taken from the other store"
    while True:
        raw, head = store.read_head(site)
        if version not in head.versions:
            return "withdrawn meanwhile"
        whole = [number for number in sorted(head.versions) if number != version and _is_whole(store, site, number)]
        if not whole:
            return ""
        current = whole[-1] if head.current == version else head.current
        left = {number: sha256 for number, sha256 in head.versions.items() if number != version}
        changed = Head(current=current, last=head.last, versions=left)
        if store.commit.swap(head_path(site), raw, changed.to_bytes()):
            return f"withdrawn; version {current} is the current one"


def _take_version(store: Store, source: Store, site: str, version: int) -> bool:
    """Copy the files of a version, when the other store has the very same one undamaged."""
    _, head = store.read_head(site)
    try:
        source.read(site, version)
        files = source.version_files(site, version)
    except (NotFound, StoreError):
        return False
    if hashlib.sha256(files[MANIFEST]).hexdigest() != head.versions.get(version):
        return False
    store.write_version_files(site, version, files)
    return True


def _rebuild_head(store: Store, site: str) -> str:
    raw = store.commit.register(head_path(site))
    head = head_of(store, site, finished(store, site)).used_up(max(store.numbers(site), default=0))
    if head.current is None or not store.commit.swap(head_path(site), raw, head.to_bytes()):
        return ""
    return f"written anew from {len(head.versions)} version(s); version {head.current} is the current one"


def _is_whole(store: Store, site: str, number: int) -> bool:
    try:
        store.read(site, number)
    except (NotFound, StoreError):
        return False
    return True
