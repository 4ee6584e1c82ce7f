"""Tests of jobs that run with actors on processes of this command and on a real Ray."""

import pytest

#: Runs a test on both kinds of actors. Others run on processes of this command only, see the fixture `one_cpu`.
ON_BOTH = pytest.mark.parametrize("one_cpu", ["local", "ray"], indirect=True, scope="module")
