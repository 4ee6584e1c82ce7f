"""Spool of encoded vectors, on disk by content, so that no run computes them twice.

Results of encoders are spooled at once. Publishing a site reads its spool and removes it. A killed run leaves its spool
behind, and the next run uses it.
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

from waygraph.index.store import EncoderInfo, tables
from waygraph.index.store.backends.failures import translate_errors
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.jobs.work_files import safe_file_name, work_folder

log = logging.getLogger(__name__)


class VectorSpool:
    """The spooled vectors of one site, made by one encoder in one context. Many processes may add to it.

    Each file holds one batch, float16 as in the store, and is renamed when complete. A damaged file is removed: its
    states are encoded again.

    Parameters
    ----------
    store
        Location of the store.
    site
        Key of the site.
    encoder
        The encoder and its context for the site.
    """

    def __init__(self, store: str, site: str, encoder: EncoderInfo) -> None:
        context = hashlib.sha256(json.dumps(encoder.context, sort_keys=True).encode()).hexdigest()[:8]
        self.folder = spool_folder(store, site) / f"{safe_file_name(encoder.fingerprint)}_{context}"
        self._dim = encoder.dim
        self._keys: set[str] | None = None

    def add(self, pages: Mapping[str, EncodedPage]) -> None:
        """Write vectors by content key.

        Parameters
        ----------
        pages
            Vectors by content key.

        Raises
        ------
        StoreError
            If they cannot be written.
        """
        with translate_errors(f"write vectors into {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
            name = uuid.uuid4().hex
            partial = self.folder / f"{name}.partial"
            try:
                table = pa.Table.from_batches(tables.vector_batches(pages), schema=tables.VECTOR_SCHEMA)
                pq.write_table(
                    table,
                    partial,
                    compression="zstd",
                    compression_level=1,
                    write_page_checksum=True,
                    **tables.VECTOR_ENCODING,
                )
                partial.rename(self.folder / f"{name}.parquet")
            finally:
                partial.unlink(missing_ok=True)
        self.known().update(pages)

    def known(self) -> set[str]:
        """Return the content keys in the spool, as of the last read or write of this object."""
        if self._keys is None:
            self._keys = set(self.read())
        return self._keys

    def read(self) -> dict[str, EncodedPage]:
        """Read all vectors by content key."""
        pages: dict[str, EncodedPage] = {}
        for file in _files(self.folder, "*.parquet"):
            try:
                pages.update(tables.read_pages(pq.read_table(file, page_checksum_verification=True), self._dim))
            except FileNotFoundError:
                continue  # another run published the site and removed the spool
            except (pa.ArrowException, OSError, KeyError, TypeError, ValueError) as error:
                log.warning("spool/damaged %s: %s", file, error)
                file.unlink(missing_ok=True)
        self._keys = set(pages)
        return pages

    def remove(self) -> None:
        """Remove all vectors of this encoder and site, of this context and earlier ones."""
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
        return []  # removed during the listing


def spool_folder(store: str, site: str) -> Path:
    """Return the folder of all spools of a site."""
    return work_folder(store, "vectors") / safe_file_name(site)
