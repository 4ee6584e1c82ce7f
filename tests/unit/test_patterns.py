"""Regular expressions of users are checked when they are read, and can never hang a run."""

import copy

import pytest

from waygraph.errors import InvalidInput
from waygraph.patterns import MAX_LENGTH, compile_pattern


def test_the_first_match_is_told_whatever_its_case():
    assert compile_pattern("log ?out").search("Please LOG OUT now") == "LOG OUT"
    assert compile_pattern("über").search("Mehr ÜBER uns") == "ÜBER"
    assert compile_pattern("log ?out").search("catalogue") is None
    assert compile_pattern("Log", ignore_case=False).search("log") is None


@pytest.mark.parametrize("source", [r"(a+)+$", r"(a|a)*b", r"(\w+\s?)*;", r"^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_expressions_that_would_backtrack_without_end_answer_for_long_texts(source):
    # Each of these takes longer than the age of the universe in a backtracking engine.
    assert compile_pattern(source).search("a" * 50_000 + "!") is None


@pytest.mark.parametrize(
    "source", ["(", "[", "a**", r"(a)\1", "a(?=b)", "(?<!x)y", "x{1000}{1000}", "a" * (MAX_LENGTH + 1)]
)
def test_what_is_no_expression_or_an_expensive_one_is_one_clear_error(source):
    with pytest.raises(InvalidInput) as raised:
        compile_pattern(source)
    assert raised.value.hint
    assert "b'" not in raised.value.message


def test_half_a_surrogate_pair_in_a_text_is_searched_like_any_other():
    assert compile_pattern("x.y").search("x\ud800y") == "x?y"


def test_a_pattern_is_plain_data():
    pattern = compile_pattern("a+")
    assert copy.deepcopy(pattern) == pattern
    assert str(pattern) == "a+"
