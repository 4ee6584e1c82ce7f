"""Translation of failures of a disk or an object store into errors with a hint."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from waygraph.core.errors import StoreError
from waygraph.index.store.backends.storage_urls import CREDENTIALS_HINT

_HINTS = {
    errno.EACCES: "Change its permissions or use another folder.",
    errno.EPERM: "Change its permissions or use another folder.",
    errno.EROFS: "Its file system is mounted read-only: use another folder.",
    errno.ENOSPC: "The disk is full: make room and run the command again.",
    errno.EFBIG: "The file is larger than allowed (ulimit -f, or the file system's limit): raise the limit.",
    errno.EDQUOT: "The quota is used up: make room and run the command again.",
    errno.ENOTDIR: "Part of the path is a file: use another folder.",
    errno.EEXIST: "Part of the path is a file: use another folder.",
}

#: Hints for failures of object stores, which pyarrow and boto3 report as text only.
_TEXT_HINTS = (
    (
        re.compile("AccessDenied|ACCESS_DENIED|Forbidden|status 403|AllAccessDisabled"),
        "Check whether the bucket's policy allows it.",
    ),
    (
        re.compile("InvalidAccessKeyId|SignatureDoesNotMatch|INVALID_ACCESS_KEY_ID|credentials", re.IGNORECASE),
        CREDENTIALS_HINT,
    ),
    # Checksums at the end of an upload, which the AWS libraries send by default, and older servers cannot read.
    (
        re.compile("MissingContentLength|status 411"),
        "The server knows no checksums at the end of uploads: set AWS_REQUEST_CHECKSUM_CALCULATION=when_required.",
    ),
    (re.compile("NoSuchBucket|NO_SUCH_BUCKET"), "Create the bucket first; waygraph creates none."),
    (
        re.compile("QuotaExceeded|InsufficientStorage|InsufficientCapacity|StorageFull|status 507", re.IGNORECASE),
        "Make room, and run the command again.",
    ),
    (
        re.compile("NETWORK_CONNECTION|Could not connect|timed? ?out|SlowDown", re.IGNORECASE),
        "Check whether AWS_ENDPOINT_URL can be reached.",
    ),
)


@contextmanager
def translate_errors(operation: str) -> Iterator[None]:
    """Translate OSErrors of a disk or an object store into StoreErrors that name the operation."""
    try:
        yield
    except OSError as error:
        reason = str(error.strerror or error).rstrip(".")
        known = _HINTS.get(error.errno or 0) or next((hint for text, hint in _TEXT_HINTS if text.search(reason)), None)
        raise StoreError(f"Cannot {operation}: {reason}.", hint=known or "Check the store's location.") from error
