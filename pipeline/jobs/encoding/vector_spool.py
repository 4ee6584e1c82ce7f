"""Where are vectors kept until they are published? On disk by content, so that no run computes them twice.

Whatever an encoder gives back is spooled at once; publishing a site reads its spool and removes it. A run that is
killed leaves its spool behind, and the next one goes on with it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from index.store import tables
from index.store.layout import explained
from index.vectors.multivector import EncodedPage
from pipeline.encode.protocol import SiteContext
from pipeline.jobs.unfinished_work import file_name, unfinished_work

log = logging.getLogger(__name__)


class Spool:
    """The spooled vectors of one site, made by one encoder in one context. Many processes may add to it.

    A file is one batch, float16 as in the store, and has its name only when it is complete. A damaged one is removed:
    its states are encoded again.

    Parameters
    ----------
    store : location of the store.
    fingerprint, dim : of the encoder.
    context : see `Encoder.prepare_site`.

    """

    def __init__(self, store: str, site: str, fingerprint: str, context: SiteContext, dim: int) -> None:
        terms = hashlib.sha256(json.dumps(context, sort_keys=True).encode()).hexdigest()[:8]
        self.folder = unfinished_work(store, "vectors") / file_name(site) / f"{file_name(fingerprint)}_{terms}"
        self._dim = dim
        self._keys: set[str] | None = None

    def add(self, pages: Mapping[str, EncodedPage]) -> None:
        """Keep vectors by content key.

        Raises
        ------
        StoreError
            When they cannot be written.

        """
        with explained(f"write vectors into {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            name = uuid.uuid4().hex
            partial = self.folder / f"{name}.partial"
            try:
                table = pa.Table.from_batches(tables.vector_batches(pages), schema=tables.VECTORS)
                pq.write_table(table, partial, compression="zstd", compression_level=1, write_page_checksum=True)
                partial.rename(self.folder / f"{name}.parquet")
            finally:
                partial.unlink(missing_ok=True)
        self.known().update(pages)

    def known(self) -> set[str]:
        """Content keys of what is there, as far as this object knows."""
        if self._keys is None:
            self._keys = set(self.read())
        return self._keys

    def read(self) -> dict[str, EncodedPage]:
        """All vectors by content key, read anew."""
        pages: dict[str, EncodedPage] = {}
        for file in _files(self.folder, "*.parquet"):
            try:
                pages.update(tables.read_pages(pq.read_table(file, page_checksum_verification=True), self._dim))
            except FileNotFoundError:
                continue  # another run published the site, and removed it
            except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
                log.warning("spool/damaged %s: %s", file, error)
                file.unlink(missing_ok=True)
        self._keys = set(pages)
        return pages

    def remove(self) -> None:
        """Remove what the encoder left of this site, in this context and in those that the site had before."""
        prefix = self.folder.name.rpartition("_")[0]
        for folder in _files(self.folder.parent, f"{prefix}_*"):
            shutil.rmtree(folder, ignore_errors=True)
        try:
            self.folder.parent.rmdir()
        except OSError:
            log.debug("spool/in_use %s: another encoder's vectors are there", self.folder.parent)
        self._keys = None


def _files(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except FileNotFoundError:
        return []  # removed while it was listed


def spool_folder(store: str, site: str) -> Path:
    """Where the spools of a site are."""
    return unfinished_work(store, "vectors") / file_name(site)
