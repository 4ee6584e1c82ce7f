"""`Commit` in an S3-compatible object store, by conditional writes; there are no renames.

An object appears whole or not at all, and is durable when it appears. Object stores lack the replacement of an object
on condition that it still holds what was read. A register is therefore a series of records,
`registers/<path>/<number>`, each created with `If-None-Match: *`. Numbers count down, so the newest record is listed
first.

A claim is an object that its holder rewrites every minute (`s3_lease`). A claim that was not written for ten minutes,
by the server's clock, counts as left by a process that died. That is weaker than a lock: the process may only have been
suspended. Therefore what it left is deleted only after the number that it may still try to publish has been given up
(`Publisher`), and the process itself deletes nothing more under its claim.
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

from waygraph.core.errors import StoreError
from waygraph.index.store.backends.clock import clock
from waygraph.index.store.backends.commit import RECENT_SECONDS, StoreLease, check_valid
from waygraph.index.store.backends.concurrency import MAX_CONCURRENT, concurrent_map
from waygraph.index.store.backends.s3_lease import STALE_SECONDS, S3Lease

REGISTERS = "registers"
_LAST_RECORD = 10**12 - 1
#: Larger objects are uploaded in parts.
_MULTIPART_BYTES = 64 * 2**20
_PART_BYTES = 16 * 2**20
#: Maximum number of objects per delete request (the API's limit).
_DELETE_BATCH = 1_000
_ATTEMPTS = 5
_CONNECT_SECONDS, _READ_SECONDS = 10, 60
#: A conditional write that conflicts with a concurrent one is retried: the server has not decided which one counts.
_CONFLICT_TRIES = 20
_CONFLICT_SECONDS = 0.05
#: Up to this many registers are read one by one; for more, listing all of them is cheaper.
_MAX_SINGLE_READS = 4
_NO_ETAG = f'"{"0" * 32}"'
#: Metadata key of the process that wrote an object, by which a retried request recognises its own write.
_WRITER = "writer"
#: The claim under which a request deletes; it is checked before every attempt.
_UNDER: ContextVar[StoreLease | None] = ContextVar("_UNDER", default=None)
#: `If-Match` on an object that is gone is answered with 404.
_NOT_MET = {"PreconditionFailed", "412", "404", "NoSuchKey"}
_CONFLICT = {"ConditionalRequestConflict", "OperationAborted", "409"}
_ABSENT = {"404", "NoSuchKey", "NotFound"}
_UNKNOWN = {"NotImplemented", "501"}
_NEEDED = "which publishing needs."
_SERVERS = "Use an object store with conditional writes, such as Amazon S3, MinIO, Ceph or R2."


def connect() -> Any:  # noqa: ANN401 - boto3 creates its client classes at run time
    """Create a client for the endpoint and the credentials of the standard AWS variables and files."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    style = {"addressing_style": "path"} if custom_endpoint() else {}
    config = Config(
        retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
        max_pool_connections=2 * MAX_CONCURRENT,
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        s3=style,
    )
    client = boto3.session.Session().client("s3", config=config, region_name=region)
    client.meta.events.register("before-send.s3.DeleteObjects", _check_claim)
    return client


def custom_endpoint() -> str:
    """Return the endpoint that the environment names; empty: Amazon's."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""


class S3Commit:
    """`Commit` in a bucket; thread-safe.

    Parameters
    ----------
    client
        An S3 client of boto3.
    bucket
        Name of the bucket.
    prefix
        Prefix of all keys of the store, without a slash at its end; may be empty.
    """

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:  # noqa: ANN401
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        #: By register, key and content of the newest record that was read. Records never change.
        self._records: dict[str, tuple[str, bytes]] = {}
        #: Whether the server compares the value of `If-Match` without quotes, as Ceph 16 does.
        self._bare_etags = False

    def create_root(self) -> None:
        """Check that the bucket exists; prefixes need not be created."""
        try:
            self.now()
        except _Rejected as error:
            if error.code in _ABSENT:
                raise StoreError(
                    f"There is no bucket '{self._bucket}'.", hint="Create it; waygraph creates none."
                ) from error
            raise

    def check_writable(self, marker: str) -> None:
        """Check that the server refuses to create an existing object, and replaces unchanged objects only."""
        content, existing = self.read(marker), self._head(marker)
        if content is None or existing is None:
            return

        def replaces(**condition: str) -> bool:
            return self._put_if(marker, content, uuid.uuid4().hex, **condition) is not None

        for condition in ({"IfNoneMatch": "*"}, {"IfMatch": _NO_ETAG}):
            if replaces(**condition):
                name = "If-None-Match: *" if "IfNoneMatch" in condition else "If-Match"
                raise StoreError(f"The server of s3://{self._bucket} ignores '{name}', {_NEEDED}", hint=_SERVERS)
        if replaces(**self._if_match(existing["ETag"])):
            return
        self._bare_etags = True
        if not replaces(**self._if_match(existing["ETag"])):
            raise StoreError(f"The server of s3://{self._bucket} never fulfils 'If-Match', {_NEEDED}", hint=_SERVERS)

    def _if_match(self, etag: str) -> dict[str, str]:
        return {"IfMatch": etag.strip('"') if self._bare_etags else etag}

    def read(self, path: str) -> bytes | None:
        """Get an object."""
        try:
            with _as_os_errors():
                return bytes(self._client.get_object(**self._at(path))["Body"].read())
        except _Rejected as error:
            if error.code in _ABSENT:
                return None
            raise

    def put(self, path: str, content: bytes) -> None:
        """Put an object; a large one is uploaded in concurrent parts."""
        with _as_os_errors():
            if len(content) < _MULTIPART_BYTES:
                self._client.put_object(**self._at(path), Body=content)
            else:
                self._upload(path, BytesIO(content))

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Collect the chunks in a temporary file and put that, so a stream that fails puts nothing."""
        with TemporaryFile() as file:
            file.writelines(chunks)
            file.seek(0)
            with _as_os_errors():
                self._upload(path, file)

    def _upload(self, path: str, file: IO[bytes]) -> None:
        parts = TransferConfig(
            multipart_threshold=_MULTIPART_BYTES, multipart_chunksize=_PART_BYTES, max_concurrency=MAX_CONCURRENT
        )
        self._client.upload_fileobj(file, self._bucket, self._prefix + path, Config=parts)

    def create(self, path: str, content: bytes) -> bool:
        """Put an object with `If-None-Match: *`."""
        return self._put_if(path, content, uuid.uuid4().hex, IfNoneMatch="*") is not None

    def _put_if(self, path: str, content: bytes, writer: str, **condition: str) -> str | None:
        """Put an object conditionally, and return its ETag; None if the condition is not met."""
        for _ in range(_CONFLICT_TRIES):
            try:
                with _as_os_errors():
                    answer = self._client.put_object(
                        **self._at(path), Body=content, Metadata={_WRITER: writer}, **condition
                    )
            except _Rejected as error:
                if error.code in _CONFLICT:
                    time.sleep(_CONFLICT_SECONDS)
                    continue
                if error.code not in _NOT_MET:
                    raise
                # The response to an earlier attempt may have been lost: then the existing object is this writer's own.
                existing = self._head(path)
                is_own = existing is not None and existing["Metadata"].get(_WRITER) == writer
                return existing["ETag"] if existing is not None and is_own else None
            return str(answer["ETag"])
        raise StoreError(f"Other processes keep writing {path} of s3://{self._bucket}.", hint="Try again.")

    def ensure(self, path: str, content: bytes) -> bool:
        """Create the object in one request if it is new, else compare its size; the server keeps checksums."""
        if self.create(path, content):
            return False
        existing = self._head(path)
        if existing is not None and existing["ContentLength"] == len(content) and not self._is_old(existing):
            return False
        self.put(path, content)
        return existing is not None

    def touch(self, path: str) -> bool | None:
        """Copy an old object onto itself."""
        existing = self._head(path)
        if existing is None or not self._is_old(existing):
            return None if existing is None else False
        try:
            with _as_os_errors():
                self._client.copy_object(
                    **self._at(path),
                    CopySource={"Bucket": self._bucket, "Key": self._prefix + path},
                    MetadataDirective="REPLACE",
                )
        except _Rejected as error:
            if error.code in _ABSENT:
                return None
            raise
        return True

    def read_register(self, path: str) -> bytes | None:
        """Read the newest record, with one request if its content is known already, else two."""
        newest = self._newest_record(path)
        return None if newest is None else self._read_record(path, newest)

    def _newest_record(self, path: str) -> str | None:
        """Return the key of the newest record, relative to the store."""
        folder = f"{REGISTERS}/{path}/"
        return next((key for key, _ in self._list(folder, most=1)), None)

    def _read_record(self, path: str, key: str) -> bytes | None:
        known, content = self._records.get(path, ("", b""))
        if known == key:
            return content
        read = self.read(key)
        if read is not None:
            self._records[path] = key, read
            return read
        # It was replaced and pruned since it was listed, so there is a newer one.
        newest = self._newest_record(path)
        return None if newest is None or newest == key else self._read_record(path, newest)

    def read_registers(
        self, folder: str, name: str, among: Collection[str] | None = None
    ) -> Mapping[str, bytes | OSError]:
        """Read a few registers one by one; else list all records, a thousand per request, and read the unknown ones."""
        if among is not None and len(among) <= _MAX_SINGLE_READS:
            values = concurrent_map(lambda part: self.read_register(f"{folder}/{part}/{name}"), among)
            return {part: value for part, value in zip(among, values, strict=True) if value is not None}
        newest: dict[str, str] = {}
        start = f"{REGISTERS}/{folder}/"
        for key, _ in self._list(start):
            part, _, rest = key.removeprefix(start).partition("/")
            if rest.partition("/")[0] == name:
                newest.setdefault(part, key)
        values = concurrent_map(lambda pair: self._read_record(f"{folder}/{pair[0]}/{name}", pair[1]), newest.items())
        return {part: value for part, value in zip(newest, values, strict=True) if value is not None}

    def compare_and_swap(self, path: str, expected: bytes | None, content: bytes) -> bool:
        """Create the next record, whose number is taken if another process swapped first."""
        newest = self._newest_record(path)
        if (None if newest is None else self._read_record(path, newest)) != expected:
            return False
        last = "" if newest is None else newest.rpartition("/")[2]
        if newest is not None and not (last.isascii() and last.isdecimal()):
            raise OSError(f"{newest} is no record of a register")
        number = int(last) - 1 if last else _LAST_RECORD
        key = f"{REGISTERS}/{path}/{number:012d}"
        if not self.create(key, content):
            return False
        if self._newest_record(path) != key and self._is_late(path, key):
            self.delete([key])
            return False
        self._records[path] = key, content
        return True

    def _is_late(self, path: str, key: str) -> bool:
        """Return whether newer records were written long before this one.

        Then this process was suspended for so long that its number was swapped by others and pruned since.
        """
        written = dict(self._list(f"{REGISTERS}/{path}/"))
        return any(other < key and when < written[key] - STALE_SECONDS for other, when in written.items())

    def prune_registers(self, folder: str, name: str, before: float) -> int:
        """Delete records that were replaced by a record older than `before`."""
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

    def claim(self, path: str) -> StoreLease | None:
        """Create the object of a claim, and renew it every minute."""
        return self._lease(path, IfNoneMatch="*")

    def take_over(self, path: str) -> StoreLease | None:
        """Replace the object of a claim that was not renewed for ten minutes."""
        existing = self._head(path)
        if existing is None or self._age(existing) < STALE_SECONDS:
            return None
        return self._lease(path, **self._if_match(existing["ETag"]))

    def _lease(self, path: str, **condition: str) -> StoreLease | None:
        since, holder = clock(), uuid.uuid4().hex
        etag = self._put_if(path, _claim_content(holder), holder, **condition)
        return None if etag is None else S3Lease(_ClaimObject(self, path, holder, etag), since)

    def renew_claim(self, path: str, holder: str) -> str | None:
        """Rewrite a claim and return its ETag; None, and no change, if this holder no longer owns it."""
        existing = self._head(path)
        if existing is None or existing["Metadata"].get(_WRITER) != holder:
            return None
        return self._put_if(path, _claim_content(holder), holder, **self._if_match(existing["ETag"]))

    def delete_claim(self, path: str, etag: str) -> None:
        """Delete a claim with this ETag. Where the server ignores the condition, as Ceph 16 does, it is read before."""
        existing = self._head(path)
        if existing is None or existing["ETag"] != etag:
            return
        try:
            with _as_os_errors():
                self._client.delete_object(**self._at(path), **self._if_match(etag))
        except _Rejected as error:
            if error.code in _UNKNOWN:
                self.delete([path])
            elif error.code not in _NOT_MET:
                raise

    def is_claimed(self, path: str) -> bool:
        """Return whether a claim was renewed in the last ten minutes."""
        existing = self._head(path)
        return existing is not None and self._age(existing) < STALE_SECONDS

    def persist(self, paths: Iterable[str]) -> None:
        """Do nothing: objects are durable when they are written."""

    def create_folder(self, path: str) -> None:
        """Do nothing: there are no folders."""

    def remove_folder(self, path: str) -> None:
        """Delete all objects whose keys begin with the folder's path."""
        self.delete(key for key, _ in self._list(f"{path}/"))

    def delete(self, paths: Iterable[str], *, under: StoreLease | None = None) -> None:
        """Delete a thousand objects per request; the claim is checked before each attempt of each request."""
        left = iter(paths)
        while batch := [{"Key": self._prefix + path} for path in islice(left, _DELETE_BATCH)]:
            before = _UNDER.set(under)
            try:
                with _as_os_errors():
                    answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": batch, "Quiet": True})
            finally:
                _UNDER.reset(before)
            if errors := answer.get("Errors"):
                first = errors[0]
                raise OSError(f"{first.get('Code')} for {first.get('Key')}: {first.get('Message')}")

    def now(self) -> float:
        """Return the time of the server's clock, which also sets the times of objects."""
        with _as_os_errors():
            answer = self._client.head_bucket(Bucket=self._bucket)
        return _date_of(answer)

    def _at(self, path: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + path}

    def _head(self, path: str) -> dict[str, Any] | None:
        try:
            with _as_os_errors():
                answer: dict[str, Any] = self._client.head_object(**self._at(path))
        except _Rejected as error:
            if error.code in _ABSENT:
                return None
            raise
        return answer

    def _list(self, folder: str, most: int | None = None) -> Iterator[tuple[str, float]]:
        """Yield keys that begin with `folder`, relative to the store and sorted, with their modification times."""
        arguments = {"Bucket": self._bucket, "Prefix": self._prefix + folder}
        if most is not None:
            arguments["MaxKeys"] = most  # type: ignore[assignment]
        while True:
            with _as_os_errors():
                answer = self._client.list_objects_v2(**arguments)
            for entry in answer.get("Contents", ()):
                yield entry["Key"].removeprefix(self._prefix), entry["LastModified"].timestamp()
            if most is not None or not answer.get("IsTruncated"):
                return
            arguments["ContinuationToken"] = answer["NextContinuationToken"]

    def _is_old(self, head: Mapping[str, Any]) -> bool:
        return self._age(head) > RECENT_SECONDS

    def _age(self, head: Mapping[str, Any]) -> float:
        """Return the seconds since an object was written; both times are the server's."""
        return _date_of(head) - float(head["LastModified"].timestamp())


class _ClaimObject:
    """The object of a claim that this process holds, recognised by its holder's name and changed by its ETag."""

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


def _claim_content(holder: str) -> bytes:
    # Contents differ at every write; otherwise ETags would be equal.
    return f"process {os.getpid()} on {os.uname().nodename}, {holder}, {uuid.uuid4().hex}\n".encode()


def _check_claim(**_: object) -> None:
    lease = _UNDER.get()
    if lease is not None:
        check_valid(lease)


def _date_of(answer: Mapping[str, Any]) -> float:
    date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    return parsedate_to_datetime(date).timestamp() if date else time.time()


class _Rejected(OSError):
    """A request that the server rejected, with the error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Raise failures of the object store as `OSError`, like those of a disk."""
    try:
        yield
    except ClientError as error:
        details = error.response.get("Error", {})
        code = str(details.get("Code", ""))
        raise _Rejected(code, f"{code} during {error.operation_name}: {details.get('Message', '')}") from error
    except BotoCoreError as error:
        raise OSError(str(error)) from error
    except boto3.exceptions.Boto3Error as error:  # from uploads in parts
        raise OSError(str(error)) from error
