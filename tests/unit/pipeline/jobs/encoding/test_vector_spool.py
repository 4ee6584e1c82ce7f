"""The vector spool keeps encoded vectors until they are published."""

import numpy as np
import pytest

from tests.blobs import MemoryBlobs
from waygraph.core.errors import BadImage, EncodingFailed, NotFound, StoreError
from waygraph.index.store import EncoderInfo
from waygraph.index.vectors.multivector import EncodedPage
from waygraph.pipeline.jobs.encoding.encoder_actor import ScreenshotPrefetch, Unencodable, check_page, encode_each
from waygraph.pipeline.jobs.encoding.vector_spool import VectorSpool


def page(number, dim=4):
    vectors = np.random.default_rng(number).random((number + 1, dim)).astype(np.float32)
    return EncodedPage(vectors, ("text \ud800",) * (number + 1), ((1, 2),) * (number + 1))


@pytest.fixture
def make(tmp_path):
    return lambda context=None, fingerprint="patch-1": VectorSpool(
        str(tmp_path), "a.example:80", EncoderInfo("patch", 4, fingerprint, context or {})
    )


def test_spooled_vectors_are_read_by_the_next_process_as_a_store_would_return_them(make):
    make().add({"a": page(0), "b": page(1)})
    make().add({"c": page(2)})
    found = make().read()
    assert make().known() == found.keys() == {"a", "b", "c"}
    assert np.array_equal(found["b"].vectors, page(1).vectors.astype(np.float16).astype(np.float32))
    assert found["b"].segments == page(1).segments


def test_another_context_or_encoder_has_a_spool_of_its_own(make):
    make().add({"a": page(0)})
    assert make({"boilerplate": ["x"]}).read() == make(fingerprint="patch-2").read() == {}


@pytest.mark.parametrize("damage", [lambda raw: raw[: len(raw) // 2], lambda raw: raw[:60] + b"\x00\xff" + raw[62:]])
def test_a_damaged_file_is_removed_and_its_states_are_encoded_again(make, damage):
    spool = make()
    spool.add({"a": page(40)})
    (file,) = spool.folder.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert make().read() == {}
    assert list(spool.folder.iterdir()) == []


def test_an_unfinished_file_does_not_count(make):
    spool = make()
    spool.add({"a": page(1)})
    (file,) = spool.folder.iterdir()
    file.rename(file.with_suffix(".partial"))
    assert make().read() == {}


def test_publishing_removes_the_spool_of_the_encoder_in_any_context_and_of_no_other(make):
    for spool in (make(), make({"old": 1}), make(fingerprint="patch-2")):
        spool.add({"a": page(0)})
    make().remove()
    assert make().read() == make({"old": 1}).read() == {}
    assert make(fingerprint="patch-2").read().keys() == {"a"}
    make(fingerprint="patch-2").remove()
    assert not make().folder.parent.exists()


def test_full_disk_is_reported(make, tmp_path):
    (tmp_path / "runs").write_text("in the way")
    with pytest.raises(StoreError, match="write vectors"):
        make().add({"a": page(0)})


# -- one bad state among many ----------------------------------------------------------------------------------------


def encode(numbers):
    for number in numbers:
        if number in {3, 4}:
            raise BadImage(f"{number} is no image")
        if number == 9:
            raise ZeroDivisionError("a bug")
    return [page(number) for number in numbers]


def test_unencodable_states_are_isolated_and_the_others_are_encoded():
    found = encode_each(encode, range(8))
    assert [isinstance(result, Unencodable) for result in found] == [n in {3, 4} for n in range(8)]
    assert found[3] == Unencodable("3 is no image")
    assert len(found[5].vectors) == 6


def test_unexpected_error_is_not_attributed_to_a_state():
    with pytest.raises(ZeroDivisionError):
        encode_each(encode, [8, 9])


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e6])
def test_vectors_invalid_for_a_store_are_refused(value):
    vectors = np.ones((2, 4), np.float32)
    vectors[1, 1] = value
    with pytest.raises(EncodingFailed):
        check_page(EncodedPage(vectors, ("a", "b"), ((), ())), 4)


@pytest.mark.parametrize("shape", [(0, 4), (2, 3)])
def test_vectors_of_another_shape_are_refused(shape):
    with pytest.raises(EncodingFailed):
        check_page(EncodedPage(np.ones(shape, np.float32), ("a",) * shape[0], ((),) * shape[0]), 4)


class CountedBlobs(MemoryBlobs):
    """Blobs that count how often they are read."""

    reads = 0

    def get(self, digest):
        self.reads += 1
        if digest not in self:
            raise NotFound(f"no {digest}")
        return self[digest]


def test_screenshots_are_prefetched_once_and_released_after_their_batch():
    blobs = CountedBlobs()
    blobs |= {"a": b"A", "b": b"B"}
    ahead = ScreenshotPrefetch(blobs)
    with ahead.fetched({"a", "b", "missing"}):
        assert blobs.reads == 3
        assert ahead.get("a") == b"A"
        assert blobs.reads == 3
        assert ahead.get("a") == b"A"  # a batch that is split asks again
        with pytest.raises(NotFound):
            ahead.get("missing")
    assert blobs.reads == 5
    assert ahead.get("b") == b"B"
    assert blobs.reads == 6
