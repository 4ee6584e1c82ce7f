"""How does an S3-compatible object store keep what `Commit` promises? By conditional writes, and no renames.

An object appears whole or not at all, and is durable when it does. What an object store lacks is replacing one if it
still holds what was read. So a register is a series of records, `registers/<path>/<number>`, each created with
`If-None-Match: *`; numbers count down, so that the newest record is the first one listed.

A claim is an object that its holder writes anew every minute (`bucket_claims`). One that was not written for ten
minutes, by the server's clock, counts as left by a process that died. That proves less than a lock does: therefore
nobody deletes what such a process left before the number it may still try to publish has been used up (`Store`), and
the process itself deletes nothing more by its claim.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from email.utils import parsedate_to_datetime
from io import BytesIO
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, Any

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from index.store.bucket_claims import STALE_SECONDS, S3Lease
from index.store.clock import clock
from index.store.commit import YOUNG_SECONDS, Lease, check_lasts
from index.store.concurrency import AT_ONCE, concurrently
from waygraph.errors import StoreError

REGISTERS = "registers"
_LAST_RECORD = 10**12 - 1
#: Larger objects are sent in parts.
_PART_BYTES = 16 * 2**20
_MULTIPART_BYTES = 64 * 2**20
#: Objects that one request deletes, at most (the API's limit).
_DELETE_AT_ONCE = 1_000
_ATTEMPTS = 5
_CONNECT_SECONDS, _READ_SECONDS = 10, 60
#: A conditional write that met another one is tried again: nobody knows yet which of them counts.
_CONFLICT_TRIES = 20
_CONFLICT_SECONDS = 0.05
#: So many registers are asked for one by one; a list of all costs little more than that.
_ASKED_SINGLY = 4
_NO_ETAG = f'"{"0" * 32}"'
#: What says which process wrote an object: a repeated request must recognise its own work.
_WRITER = "writer"
#: The claim by which a request deletes: it is looked at again before every try.
_UNDER: ContextVar[Lease | None] = ContextVar("_UNDER", default=None)
#: `If-Match` on an object that is gone is answered with 404.
_NOT_MET = {"PreconditionFailed", "412", "404", "NoSuchKey"}
_CONFLICT = {"ConditionalRequestConflict", "OperationAborted", "409"}
_ABSENT = {"404", "NoSuchKey", "NotFound"}
_UNKNOWN = {"NotImplemented", "501"}


def connect() -> Any:  # noqa: ANN401 - boto3 makes its clients at run time
    """A client for the endpoint and with the credentials that the standard AWS variables and files name."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    style = {"addressing_style": "path"} if own_endpoint() else {}
    config = Config(
        retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
        max_pool_connections=2 * AT_ONCE,
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        s3=style,
    )
    client = boto3.session.Session().client("s3", config=config, region_name=region)
    client.meta.events.register("before-send.s3.DeleteObjects", _refuse_without_claim)
    return client


def own_endpoint() -> str:
    """The endpoint that the environment names; empty: Amazon's."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


class S3Commit:
    """`Commit` on a bucket; thread-safe.

    Parameters
    ----------
    prefix : what all keys of the store begin with, without a slash at its end; may be empty.

    """

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:  # noqa: ANN401
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._records: dict[str, tuple[str, bytes]] = {}
        """By register, the newest record that was read: records never change."""

    def make_root(self) -> None:
        """The bucket must be there; prefixes need not be made."""
        try:
            self.now()
        except _Refused as error:
            if error.code in _ABSENT:
                raise StoreError(
                    f"There is no bucket '{self._bucket}'.", hint="Make it; waygraph makes none."
                ) from error
            raise

    def check_writable(self, marker: str) -> None:
        """Creating an object that exists, or replacing one that changed, must be refused: publishing rests on it."""
        content = self._get(marker)
        if content is None:
            return
        for condition in ({"IfNoneMatch": "*"}, {"IfMatch": _NO_ETAG}):
            if self._put_if(marker, content, uuid.uuid4().hex, **condition) is not None:
                name = "If-None-Match: *" if "IfNoneMatch" in condition else "If-Match"
                raise StoreError(
                    f"The server of s3://{self._bucket} ignores '{name}', which publishing rests on.",
                    hint="Use an object store with conditional writes, such as Amazon S3, MinIO, Ceph or R2.",
                )

    def put(self, path: str, content: bytes) -> None:
        """Put an object, a large one in parts, a few at once."""
        with _plain_errors():
            if len(content) < _MULTIPART_BYTES:
                self._client.put_object(**self._at(path), Body=content)
            else:
                self._upload(path, BytesIO(content))

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Gather the chunks in a temporary file, so that a stream that breaks off puts nothing, and put that."""
        with TemporaryFile() as file:
            file.writelines(chunks)
            file.seek(0)
            with _plain_errors():
                self._upload(path, file)

    def _upload(self, path: str, file: IO[bytes]) -> None:
        parts = TransferConfig(
            multipart_threshold=_MULTIPART_BYTES, multipart_chunksize=_PART_BYTES, max_concurrency=AT_ONCE
        )
        self._client.upload_fileobj(file, self._bucket, self._prefix + path, Config=parts)

    def create(self, path: str, content: bytes) -> bool:
        """Put with `If-None-Match: *`."""
        return self._put_if(path, content, uuid.uuid4().hex, IfNoneMatch="*") is not None

    def _put_if(self, path: str, content: bytes, writer: str, **condition: str) -> str | None:
        """The ETag of what was written; None when the condition is not met."""
        for _ in range(_CONFLICT_TRIES):
            try:
                with _plain_errors():
                    answer = self._client.put_object(
                        **self._at(path), Body=content, Metadata={_WRITER: writer}, **condition
                    )
            except _Refused as error:
                if error.code in _CONFLICT:
                    time.sleep(_CONFLICT_SECONDS)
                    continue
                if error.code not in _NOT_MET:
                    raise
                # The answer to an earlier try may have been lost on its way: then it is ours that is there.
                there = self._head(path)
                return there["ETag"] if there is not None and there["Metadata"].get(_WRITER) == writer else None
            return str(answer["ETag"])
        raise StoreError(f"Others keep writing {path} of s3://{self._bucket}.", hint="Try again.")

    def keep(self, path: str, content: bytes) -> bool:
        """One request for what is new. Of what is there, its size is compared; the server keeps checksums."""
        if self.create(path, content):
            return False
        there = self._head(path)
        if there is not None and there["ContentLength"] == len(content) and not self._is_old(there):
            return False
        self.put(path, content)
        return there is not None

    def touch(self, path: str) -> bool | None:
        """Copy an old object onto itself."""
        there = self._head(path)
        if there is None or not self._is_old(there):
            return None if there is None else False
        try:
            with _plain_errors():
                self._client.copy_object(
                    **self._at(path),
                    CopySource={"Bucket": self._bucket, "Key": self._prefix + path},
                    MetadataDirective="REPLACE",
                )
        except _Refused as error:
            if error.code in _ABSENT:
                return None
            raise
        return True

    def register(self, path: str) -> bytes | None:
        """The newest record: one request when it is known already, else two."""
        newest = self._newest(path)
        return None if newest is None else self._record(path, newest)

    def _newest(self, path: str) -> str | None:
        """Key of the newest record, relative to the store."""
        folder = f"{REGISTERS}/{path}/"
        return next((key for key, _ in self._list(folder, most=1)), None)

    def _record(self, path: str, key: str) -> bytes | None:
        known, content = self._records.get(path, ("", b""))
        if known == key:
            return content
        read = self._get(key)
        if read is not None:
            self._records[path] = key, read
            return read
        # Replaced and deleted since it was listed: there is a newer one.
        newest = self._newest(path)
        return None if newest is None or newest == key else self._record(path, newest)

    def registers(self, folder: str, name: str, among: Collection[str] | None = None) -> Mapping[str, bytes]:
        """As many requests as there are thousands of records, and one for each that is not known; a few are asked."""
        if among is not None and len(among) <= _ASKED_SINGLY:
            asked = concurrently(lambda between: self.register(f"{folder}/{between}/{name}"), among)
            return {between: content for between, content in zip(among, asked, strict=True) if content is not None}
        newest: dict[str, str] = {}
        start = f"{REGISTERS}/{folder}/"
        for key, _ in self._list(start):
            between, _, rest = key.removeprefix(start).partition("/")
            if rest.partition("/")[0] == name:
                newest.setdefault(between, key)
        read = concurrently(lambda pair: self._record(f"{folder}/{pair[0]}/{name}", pair[1]), newest.items())
        return {between: content for between, content in zip(newest, read, strict=True) if content is not None}

    def swap(self, path: str, expected: bytes | None, content: bytes) -> bool:
        """Create the record after the newest one."""
        newest = self._newest(path)
        if (None if newest is None else self._record(path, newest)) != expected:
            return False
        number = _LAST_RECORD if newest is None else int(newest.rpartition("/")[2]) - 1
        key = f"{REGISTERS}/{path}/{number:012d}"
        if not self.create(key, content):
            return False
        if self._newest(path) != key and self._came_late(path, key):
            self.delete([key])
            return False
        self._records[path] = key, content
        return True

    def _came_late(self, path: str, key: str) -> bool:
        """Whether others went on long ago, while this process was suspended, and `prune` freed this number since."""
        written = dict(self._list(f"{REGISTERS}/{path}/"))
        return any(other < key and when < written[key] - STALE_SECONDS for other, when in written.items())

    def prune(self, folder: str, name: str, before: float) -> int:
        """Delete records that a record older than `before` replaced."""
        old: list[str] = []
        replaced: set[str] = set()
        start = f"{REGISTERS}/{folder}/"
        for key, changed in self._list(start):
            register = key.rpartition("/")[0]
            if not register.endswith(f"/{name}"):
                continue
            if register in replaced:
                old.append(key)
            if changed < before:
                replaced.add(register)
        self.delete(old)
        return len(old)

    def claim(self, path: str) -> Lease | None:
        """Create its object, and write it anew every minute."""
        return self._lease(path, IfNoneMatch="*")

    def take_over(self, path: str) -> Lease | None:
        """Replace an object that was not written for ten minutes."""
        there = self._head(path)
        if there is None or self._age(there) < STALE_SECONDS:
            return None
        return self._lease(path, IfMatch=there["ETag"])

    def _lease(self, path: str, **condition: str) -> Lease | None:
        since, holder = clock(), uuid.uuid4().hex
        etag = self._put_if(path, _says(holder), holder, **condition)
        return None if etag is None else S3Lease(_ClaimObject(self, path, holder, etag), since)

    def renew_claim(self, path: str, holder: str) -> str | None:
        """Write a claim anew and return its ETag; None, and no change, when it is not this holder's any more."""
        there = self._head(path)
        if there is None or there["Metadata"].get(_WRITER) != holder:
            return None
        return self._put_if(path, _says(holder), holder, IfMatch=there["ETag"])

    def delete_claim(self, path: str, etag: str) -> None:
        """Delete what has this ETag. Where the server knows no conditional deletes, the caller's look must do."""
        try:
            with _plain_errors():
                self._client.delete_object(**self._at(path), IfMatch=etag)
        except _Refused as error:
            if error.code in _UNKNOWN:
                self.delete([path])
            elif error.code not in _NOT_MET:
                raise

    def is_claimed(self, path: str) -> bool:
        """Whether it was written in the last ten minutes."""
        there = self._head(path)
        return there is not None and self._age(there) < STALE_SECONDS

    def persist(self, paths: Iterable[str]) -> None:
        """Nothing: what was written is durable."""

    def make_folder(self, path: str) -> None:
        """Nothing: there are no folders."""

    def remove_folder(self, path: str) -> None:
        """Delete all that begins with its path."""
        self.delete(key for key, _ in self._list(f"{path}/"))

    def delete(self, paths: Iterable[str], *, under: Lease | None = None) -> None:
        """A thousand with one request; the claim is looked at before each, and before each time that one is sent."""
        left = iter(paths)
        while batch := [{"Key": self._prefix + path} for path in islice(left, _DELETE_AT_ONCE)]:
            before = _UNDER.set(under)
            try:
                with _plain_errors():
                    answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": batch, "Quiet": True})
            finally:
                _UNDER.reset(before)
            if errors := answer.get("Errors"):
                first = errors[0]
                raise OSError(f"{first.get('Code')} for {first.get('Key')}: {first.get('Message')}")

    def now(self) -> float:
        """The server's clock, which the times of objects are from."""
        with _plain_errors():
            answer = self._client.head_bucket(Bucket=self._bucket)
        return _date_of(answer)

    def _at(self, path: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + path}

    def _get(self, path: str) -> bytes | None:
        try:
            with _plain_errors():
                return bytes(self._client.get_object(**self._at(path))["Body"].read())
        except _Refused as error:
            if error.code in _ABSENT:
                return None
            raise

    def _head(self, path: str) -> dict[str, Any] | None:
        try:
            with _plain_errors():
                answer: dict[str, Any] = self._client.head_object(**self._at(path))
        except _Refused as error:
            if error.code in _ABSENT:
                return None
            raise
        return answer

    def _list(self, folder: str, most: int | None = None) -> Iterator[tuple[str, float]]:
        """Keys relative to the store that begin with `folder`, sorted, and when they were written."""
        arguments = {"Bucket": self._bucket, "Prefix": self._prefix + folder}
        if most is not None:
            arguments["MaxKeys"] = most  # type: ignore[assignment]
        while True:
            with _plain_errors():
                answer = self._client.list_objects_v2(**arguments)
            for entry in answer.get("Contents", ()):
                yield entry["Key"].removeprefix(self._prefix), entry["LastModified"].timestamp()
            if most is not None or not answer.get("IsTruncated"):
                return
            arguments["ContinuationToken"] = answer["NextContinuationToken"]

    def _is_old(self, there: Mapping[str, Any]) -> bool:
        return self._age(there) > YOUNG_SECONDS

    def _age(self, there: Mapping[str, Any]) -> float:
        """Seconds since it was written; both times are the server's."""
        return _date_of(there) - float(there["LastModified"].timestamp())


class _ClaimObject:
    """The object of a claim that this process holds; it is known by its holder's name, and changed by its ETag."""

    def __init__(self, commit: S3Commit, path: str, holder: str, etag: str) -> None:
        self._commit = commit
        self.path = path
        self._holder = holder
        self._etag = etag

    def renew(self) -> bool:
        etag = self._commit.renew_claim(self.path, self._holder)
        if etag is not None:
            self._etag = etag
        return etag is not None

    def delete(self) -> None:
        self._commit.delete_claim(self.path, self._etag)


def _says(holder: str) -> bytes:
    # Never the same twice: else ETags would be.
    return f"process {os.getpid()} on {os.uname().nodename}, {holder}, {uuid.uuid4().hex}\n".encode()


def _refuse_without_claim(**_: object) -> None:
    lease = _UNDER.get()
    if lease is not None:
        check_lasts(lease)


def _date_of(answer: Mapping[str, Any]) -> float:
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    return parsedate_to_datetime(date).timestamp() if date else time.time()


class _Refused(OSError):
    """The server's refusal, with its code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Failures of the object store as `OSError`, like those of a disk."""
    try:
        yield
    except ClientError as error:
        details = error.response.get("Error", {})
        code = str(details.get("Code", ""))
        raise _Refused(code, f"{code} during {error.operation_name}: {details.get('Message', '')}") from error
    except BotoCoreError as error:
        raise OSError(str(error)) from error
    except boto3.exceptions.Boto3Error as error:  # of transfers in parts
        raise OSError(str(error)) from error
