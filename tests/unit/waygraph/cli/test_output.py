"""Page text cannot control a terminal, and JSON output is valid."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.cli.output import clean, print_json, print_table


@given(st.text())
def test_cleaned_text_has_no_control_characters(text):
    for character in clean(text):
        assert character in "\n\t" or unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}


@given(st.text())
def test_cleaning_twice_changes_nothing(text):
    assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x9b31mred", r"\x9b31mred"),
        ("a\u202eb\u2066c", r"a\u202eb\u2066c"),
        ("a\tb\rc\n", "a\tb\\rc\n"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("line\u2028paragraph\u2029", r"line\u2028paragraph\u2029"),
        ("half \ud83d", r"half \ud83d"),
        ("tag \U000e0041", r"tag \U000e0041"),
        ("Grüße 你好 😊", "Grüße 你好 😊"),
    ],
)
def test_what_controls_a_terminal_is_escaped_and_text_stays(text, shown):
    assert clean(text) == shown


def test_single_line_text_has_no_line_breaks():
    assert clean("a\n  b\u2028c", one_line=True) == "a b c"


def test_table_cells_are_cleaned_and_markup_is_not_interpreted(capsys):
    print_table(["name", "n"], [["[red]x[/red]\x1b[2J\n y", 3]], right=["n"])
    out = capsys.readouterr().out
    assert r"[red]x[/red]\x1b[2J y" in out
    assert "\x1b" not in out


def test_table_columns_are_aligned_as_a_terminal_shows_them(capsys):
    print_table(["name", "n"], [["你好", 3], ["shop", 12]], right=["n"])
    assert capsys.readouterr().out == "name   n\n你好   3\nshop  12\n"


@given(st.text())
def test_json_is_ascii_and_loses_nothing(text):
    import io
    from contextlib import redirect_stdout

    stream = io.StringIO()
    with redirect_stdout(stream):
        print_json({"title": text})
    assert stream.getvalue().isascii()
    assert json.loads(stream.getvalue()) == {"title": text}
