"""Parsing of storage URLs: local paths, file URLs and bucket URLs."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from waygraph.core.errors import StoreError

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_LOCATIONS = "A store is a local folder, or s3://bucket/prefix."
CREDENTIALS_HINT = (
    "Endpoint, region and credentials come from AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY."
)


def local_path(location: str) -> Path:
    """Return the folder that a path or a `file://` URL names (StoreError for other URLs)."""
    if "://" not in location:
        return Path(location).expanduser().absolute()
    parts = urlsplit(location)
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        raise StoreError(f"Stores at {parts.scheme}:// URLs are not supported.", hint=_LOCATIONS)
    return Path(unquote(parts.path))


def bucket_and_prefix(location: str) -> tuple[str, str] | None:
    """Return bucket and prefix of an `s3://bucket/prefix` URL; None for other locations.

    Parameters
    ----------
    location
        Path or URL.

    Returns
    -------
    tuple of str and str or None
        Bucket and prefix.

    Raises
    ------
    StoreError
        If an `s3://` URL contains more than a bucket and a prefix, or no valid bucket.

    Examples
    --------
    >>> bucket_and_prefix("s3://maps-of-us/team/a/"), bucket_and_prefix("/data/maps")
    (('maps-of-us', 'team/a'), None)
    """
    if not location.lower().startswith("s3://"):
        return None
    bucket, _, prefix = location[len("s3://") :].partition("/")
    if "@" in bucket:
        # The URL is not repeated in the message: it may contain a key.
        raise StoreError("The store's URL holds credentials, which would end up in reports.", hint=CREDENTIALS_HINT)
    if not _BUCKET.fullmatch(bucket):
        raise StoreError(f"'{location}' names no bucket.", hint="Write s3://bucket or s3://bucket/prefix.")
    prefix = prefix.strip("/")
    if "?" in prefix or "#" in prefix or "//" in prefix or {".", ".."} & set(prefix.split("/")):
        raise StoreError(f"'{location}' is more than a bucket and a prefix.", hint=CREDENTIALS_HINT)
    return bucket, prefix
