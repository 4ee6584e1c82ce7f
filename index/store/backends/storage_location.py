"""Storage at a location: the file system to read it with, and the commit protocol of its kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from pyarrow import fs

from waygraph.core.errors import EnvironmentMissing
from waygraph.index.store.backends.commit import Commit
from waygraph.index.store.backends.local import LocalCommit
from waygraph.index.store.backends.storage_urls import bucket_and_prefix, local_path

_CONNECT_SECONDS, _REQUEST_SECONDS, _ATTEMPTS = 10, 60, 5


@dataclass(frozen=True, slots=True)
class StorageLocation:
    """Access to the storage at a location.

    Attributes
    ----------
    location
        Path or URL, for messages.
    files
        File system; paths are relative to the location.
    commit
        Commit protocol; paths are relative to the location.
    """

    location: str
    files: fs.FileSystem
    commit: Commit


def resolve_location(location: str) -> StorageLocation:
    """Resolve a path, a `file://` URL or an `s3://bucket/prefix` URL, without any I/O at the location.

    Parameters
    ----------
    location
        Path or URL.

    Returns
    -------
    StorageLocation
        Access to the storage.

    Raises
    ------
    StoreError
        If the location is not valid.
    EnvironmentMissing
        If the extra `s3` is not installed.
    """
    if (named := bucket_and_prefix(location)) is None:
        root = local_path(location)
        return StorageLocation(str(root), fs.SubTreeFileSystem(str(root), fs.LocalFileSystem()), LocalCommit(root))
    try:
        from waygraph.index.store.backends.s3 import custom_endpoint  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise EnvironmentMissing(
            f"The store {location} needs '{error.name}', which is not installed.",
            hint="Run: pip install 'waygraph[s3]'",
        ) from error
    return _bucket(*named, custom_endpoint())


@lru_cache(16)  # keeps connections and known records: a store is opened for every site of a run
def _bucket(bucket: str, prefix: str, endpoint: str) -> StorageLocation:
    from waygraph.index.store.backends.s3 import S3Commit, connect  # noqa: PLC0415

    client = connect()
    options: dict[str, object] = {}
    if endpoint:
        parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        options = {"endpoint_override": parts.netloc, "scheme": parts.scheme}
    files = fs.S3FileSystem(
        region=client.meta.region_name or "us-east-1",
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        **options,
    )
    path = f"{bucket}/{prefix}" if prefix else bucket
    return StorageLocation(f"s3://{path}", fs.SubTreeFileSystem(path, files), S3Commit(client, bucket, prefix))
