"""The in-page script is the concatenation of all its parts, without lines that hold only comments."""

from pathlib import Path

from waygraph.pipeline.browser.page import script
from waygraph.pipeline.browser.page.script import SCRIPT_PARTS, page_script, page_script_hash

PARTS = Path(script.__file__).parent / "js"


def test_every_part_is_in_the_script_once():
    assert sorted(SCRIPT_PARTS) == sorted(path.stem for path in PARTS.glob("*.js"))


def test_only_lines_that_hold_nothing_but_a_comment_are_removed():
    text = """// first
const a = "// not a comment"; // kept
/** one line */
  /**
   * several
   * lines
   */
/** @type {any} */ (a).b = 1;
const c = `
text`;
"""
    assert script._COMMENT_LINES.sub("", text) == (
        'const a = "// not a comment"; // kept\n/** @type {any} */ (a).b = 1;\nconst c = `\ntext`;\n'
    )


def test_the_hash_names_the_code_and_not_its_comments():
    assert page_script_hash() == page_script_hash()
    code = [line.strip() for line in page_script().splitlines()]
    assert not any(line.startswith(("//", "* ")) for line in code)
    parts = [line.strip() for part in SCRIPT_PARTS for line in (PARTS / f"{part}.js").read_text().splitlines()]
    assert sum(line.startswith("const ") for line in code) == sum(line.startswith("const ") for line in parts) + 3
