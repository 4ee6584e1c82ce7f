"""The counters in the code of the explorer are exactly those documented in docs/counters.md."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_counter_is_documented_and_every_documented_counter_exists():
    documented = set(re.findall(r"^\| `([a-z_]+/[a-z_]+)` \|", (ROOT / "docs/counters.md").read_text(), re.MULTILINE))
    source = "".join(path.read_text() for path in (ROOT / "pipeline").rglob("*.py"))
    bumped = set(re.findall(r'counters\["([a-z_]+/[a-z_]+)"\] \+=', source))
    assert documented == bumped
