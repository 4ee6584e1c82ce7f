"""Results of the in-page script are parsed as JSON."""

import json

from hypothesis import given
from hypothesis import strategies as st

from waygraph.pipeline.browser.page.evaluate import parse_script_result

#: As scripts of pages write them: with halves of characters too.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=5)
ANSWERS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(TEXTS, parts, max_size=3),
    max_leaves=8,
)


@given(ANSWERS, st.booleans())
def test_every_result_is_parsed_as_json(answer, ascii_only):
    raw = json.dumps(answer, ensure_ascii=ascii_only)
    assert parse_script_result(raw) == json.loads(raw)


def test_lone_surrogate_is_parsed():
    assert parse_script_result('{"name": "\\ud83d"}') == {"name": "\ud83d"}
