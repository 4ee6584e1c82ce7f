"""What is at a store's location? The filesystem to read it with, and the commit protocol of its kind of storage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from pyarrow import fs

from index.store.commit import Commit
from index.store.layout import bucket_and_prefix, local_path
from index.store.local import LocalCommit
from waygraph.errors import EnvironmentMissing

_CONNECT_SECONDS, _REQUEST_SECONDS, _ATTEMPTS = 10, 60, 5


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store is: its location as people are shown it, and how it is read and written."""

    location: str
    files: fs.FileSystem
    commit: Commit


def place_of(location: str) -> Place:
    """The place that a path, a `file://` or an `s3://bucket/prefix` URL names; nothing is asked of it yet.

    Raises
    ------
    StoreError
        When the location means nothing.
    EnvironmentMissing
        When the extra `s3` is not installed.

    """
    if (named := bucket_and_prefix(location)) is None:
        root = local_path(location)
        return Place(str(root), fs.SubTreeFileSystem(str(root), fs.LocalFileSystem()), LocalCommit(root))
    try:
        from index.store.objects import own_endpoint  # noqa: PLC0415 - an extra, and slow to import
    except ImportError as error:
        raise EnvironmentMissing(
            f"The store {location} needs '{error.name}', which is not installed.",
            hint="Run: pip install 'waygraph[s3]'",
        ) from error
    return _bucket(*named, own_endpoint())


@lru_cache(16)  # connections are kept, and known records: a store is opened for every site of a run
def _bucket(bucket: str, prefix: str, endpoint: str) -> Place:
    from index.store.objects import S3Commit, connect  # noqa: PLC0415

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
    return Place(f"s3://{path}", fs.SubTreeFileSystem(path, files), S3Commit(client, bucket, prefix))
