"""An exclusive lock is held by one process at a time, and ends with its block."""

import pytest

from waygraph.core.locks import FileInUse, exclusive_lock, is_locked


def test_a_lock_excludes_others_until_the_end_of_its_block(tmp_path):
    path = tmp_path / "run.lock"
    with exclusive_lock(path):
        assert is_locked(path)
        with pytest.raises(FileInUse), exclusive_lock(path):
            pass
    assert not is_locked(path)
    with exclusive_lock(path):
        assert is_locked(path)


def test_an_error_in_the_block_is_not_taken_for_a_lock_of_another(tmp_path):
    with pytest.raises(BlockingIOError), exclusive_lock(tmp_path / "run.lock"):
        raise BlockingIOError
