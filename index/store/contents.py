"""Contents of a store: its sites, their versions and claims, and single files."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyarrow import fs

from waygraph.core.errors import StoreError, not_mapped
from waygraph.index.store.backends.commit import Commit
from waygraph.index.store.backends.failures import translate_errors
from waygraph.index.store.layout import HEAD, check_present, claim_path, head_path
from waygraph.index.store.manifest import Head
from waygraph.index.store.names import is_site_key, is_version_name, validate_site_key

#: Number of sites that an error message lists.
_LISTED_SITES = 20


class StoreContents:
    """Read access to the sites, versions and files of a store; the base of `Store`.

    Parameters
    ----------
    location
        Path or URL of the store, for messages.
    files
        File system; paths are relative to the store.
    commit
        Commit protocol; paths are relative to the store.
    """

    def __init__(self, location: str, files: fs.FileSystem, commit: Commit) -> None:
        self.location = location
        self.files = files
        self.commit = commit

    def sites(self) -> list[str]:
        """Return the keys of the mapped sites, sorted."""
        return sorted(self.heads())

    def all_sites(self) -> list[str]:
        """Return the keys of all sites that have a folder: mapped ones, removed ones, and those whose HEAD is lost."""
        with translate_errors(f"list the sites of {self.location}"):
            entries = self.files.get_file_info(fs.FileSelector("sites", allow_not_found=True))
        return sorted({entry.base_name for entry in entries if is_site_key(entry.base_name)} | self.heads().keys())

    def heads(self, sites: Collection[str] | None = None) -> dict[str, int | None]:
        """Return the numbers of the current versions of all mapped sites.

        The whole store is listed at once, which costs an object store one request per thousand sites.

        Parameters
        ----------
        sites
            Keys of the sites of interest; the result may contain others too. None: all.

        Returns
        -------
        dict of str to int or None
            Version numbers by site; None if the site's `HEAD` is damaged.
        """
        return {site: None if isinstance(head, StoreError) else head for site, head in self.scan_heads(sites).items()}

    def scan_heads(self, sites: Collection[str] | None = None) -> Mapping[str, int | StoreError]:
        """Return by mapped site the number of its current version, or why its `HEAD` cannot be read; see `heads`."""
        found: dict[str, int | StoreError] = {}
        with translate_errors(f"list the sites of {self.location}"):
            registers = self.commit.read_registers("sites", HEAD, sites)
        if not registers:
            self.check_present()
        for site, content in registers.items():
            if not is_site_key(site):
                continue
            path = f"{self.location}/{head_path(site)}"
            try:
                with translate_errors(f"read {path}"):
                    if isinstance(content, OSError):
                        raise content
                    current = Head.from_bytes(content, path).current
            except StoreError as error:
                # Opening or removing the site raises this error, too; the other sites are not affected.
                found[site] = error
            else:
                if current is not None:
                    found[site] = current
        return found

    def check_present(self) -> None:
        """Raise StoreError unless the marker of the store is there, see `waygraph.index.store.layout.check_present`."""
        check_present(self.commit, self.location)

    def head(self, site: str) -> int:
        """Return the number of the current version of a site (NotFound if it is not mapped)."""
        return self.mapped_head(site)[0]

    def current(self, site: str) -> int | None:
        """Return the number of the current version of a site; None if it is not mapped. Reads no other site."""
        return self.read_head(site)[1].current

    def versions(self, site: str) -> list[int]:
        """Return the numbers of all published versions of a site, oldest first (NotFound if it is not mapped)."""
        return sorted(self.mapped_head(site)[1].versions)

    def read_head(self, site: str) -> tuple[bytes | None, Head]:
        """Return the raw value of a site's `HEAD` register, None if it was never set, and the head that it holds."""
        path = head_path(site)
        with translate_errors(f"read {self.location}/{path}"):
            content = self.commit.read_register(path)
        return content, Head() if content is None else Head.from_bytes(content, f"{self.location}/{path}")

    def mapped_head(self, site: str) -> tuple[int, Head]:
        """Return the current version and the head of a mapped site; NotFound lists the mapped sites."""
        _, head = self.read_head(site)
        if head.current is None:
            self.check_present()
            mapped = self.sites()
            known = ", ".join(mapped[:_LISTED_SITES]) or "none yet"
            more = f" and {len(mapped) - _LISTED_SITES} more" if len(mapped) > _LISTED_SITES else ""
            raise not_mapped(
                site, f"Site '{site}' is not mapped in {self.location}.", hint=f"Mapped sites: {known}{more}."
            )
        return head.current, head

    def numbers(self, site: str) -> list[int]:
        """Return the numbers of all versions that have files, published or not, sorted."""
        return sorted(self._numbers(validate_site_key(site), "versions"))

    def claimed(self, site: str) -> list[int]:
        """Return the numbers of all versions that are claimed by a writer, alive or not, sorted."""
        return sorted(self._numbers(validate_site_key(site), "claims"))

    def leftovers(self, site: str) -> list[int]:
        """Return the numbers that are not published and not claimed by a live writer, sorted.

        They are what crashed writers left behind, and what is left of removed versions.
        """
        numbers = {*self.claimed(site), *self.numbers(site)} - self.read_head(site)[1].versions.keys()
        return [number for number in sorted(numbers) if not self.commit.is_claimed(claim_path(site, number))]

    def _numbers(self, site: str, folder: str) -> list[int]:
        path = f"sites/{site}/{folder}"
        with translate_errors(f"list {self.location}/{path}"):
            entries = self.files.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return [int(entry.base_name) for entry in entries if is_version_name(entry.base_name)]

    def holds(self, path: str) -> bool:
        """Return whether there is a file at a path."""
        with translate_errors(f"look for {self.location}/{path}"):
            return bool(self.files.get_file_info(path).type == fs.FileType.File)

    def read_file(self, path: str) -> bytes | None:
        """Return the unchecked content of a file; None if there is none."""
        with translate_errors(f"read {self.location}/{path}"):
            return self.commit.read(path)
