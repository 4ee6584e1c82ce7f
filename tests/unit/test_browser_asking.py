"""What do answers of the in-page script become?"""

import json

from hypothesis import given
from hypothesis import strategies as st

from pipeline.browser.asking import read_answer

#: As scripts of pages write them: with halves of characters too.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=5)
ANSWERS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(TEXTS, parts, max_size=3),
    max_leaves=8,
)


@given(ANSWERS, st.booleans())
def test_every_answer_is_read_as_json_says(answer, ascii_only):
    raw = json.dumps(answer, ensure_ascii=ascii_only)
    assert read_answer(raw) == json.loads(raw)


def test_half_a_character_is_read():
    assert read_answer('{"name": "\\ud83d"}') == {"name": "\ud83d"}
