"""The picture of the demo in the README."""

import doctest

from bench import demo_picture
from bench.demo_picture import shown_lines


def test_the_examples_are_true():
    assert doctest.testmod(demo_picture).failed == 0


def test_addresses_of_the_shop_are_left_out():
    lines = ["  9 states, 2 edges", "  Query: a", "  Query: b", "  1. http://127.0.0.1:4001/cart", "Next:", "End"]
    assert shown_lines(lines)[-2:] == ["  1. /cart", "End"]
