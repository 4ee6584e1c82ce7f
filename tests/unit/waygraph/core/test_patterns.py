"""Regular expressions from users are validated when they are read, and cannot hang a run."""

import copy

import pytest

from waygraph.core.errors import InvalidInput
from waygraph.core.patterns import MAX_LENGTH, compile_pattern


def test_the_first_match_is_returned_in_any_case():
    assert compile_pattern("log ?out").search("Please LOG OUT now") == "LOG OUT"
    assert compile_pattern("über").search("Mehr ÜBER uns") == "ÜBER"
    assert compile_pattern("log ?out").search("catalogue") is None
    assert compile_pattern("Log", ignore_case=False).search("log") is None


@pytest.mark.parametrize("source", [r"(a+)+$", r"(a|a)*b", r"(\w+\s?)*;", r"^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_expressions_with_exponential_backtracking_finish_on_long_texts(source):
    # Each of these takes longer than the age of the universe in a backtracking engine.
    assert compile_pattern(source).search("a" * 50_000 + "!") is None


@pytest.mark.parametrize(
    "source", ["(", "[", "a**", r"(a)\1", "a(?=b)", "(?<!x)y", "x{1000}{1000}", "a" * (MAX_LENGTH + 1)]
)
def test_malformed_and_expensive_expressions_are_refused(source):
    with pytest.raises(InvalidInput) as raised:
        compile_pattern(source)
    assert raised.value.hint
    assert "b'" not in raised.value.message


def test_a_text_with_a_lone_surrogate_can_be_searched():
    assert compile_pattern("x.y").search("x\ud800y") == "x?y"


def test_a_pattern_is_plain_data():
    pattern = compile_pattern("a+")
    assert copy.deepcopy(pattern) == pattern
    assert str(pattern) == "a+"
