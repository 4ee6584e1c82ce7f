"""Selectors for Playwright, made from recorded actions. `test_mcp_selectors` tries them in a browser."""

from __future__ import annotations

import pytest

from waygraph.core.schemas import ActionModel
from waygraph.serve.mcp.selectors import selector_of

PATH = "/html[1]/body[1]/a[2]"


@pytest.mark.parametrize(
    ("action", "selector"),
    [
        ({"role": "link", "name": "A", "xpath": PATH}, f'role=link[name="A"s] >> nth=0 >> internal:or="xpath={PATH}"'),
        ({"role": "link", "name": "A", "nth": 2, "xpath": PATH, "css": "#a"}, "css=#a"),
        ({"role": "link", "xpath": PATH}, f"xpath={PATH}"),
        ({"role": "link", "name": "A" * 400, "xpath": PATH}, f"xpath={PATH}"),
        (
            {"frame": ["/html[1]/iframe[1]"], "xpath": PATH},
            f"xpath=/html[1]/iframe[1] >> internal:control=enter-frame >> xpath={PATH}",
        ),
        (
            {"xpath": '/html[1]/x-a[1] >>> /*[name()="svg"][1]/b[3]'},
            "xpath=/html[1]/x-a[1] >> css=:scope > svg:nth-of-type(1) > b:nth-of-type(3)",
        ),
        ({"role": "link", "name": "A", "xpath": "/x[1] ~~~ 40/a[1]"}, 'role=link[name="A"s] >> nth=0'),
        ({"role": "button", "name": "A", "xpath": "/x[1]::scroll-button(right)"}, ""),
        ({"kind": "goto", "url": "http://x/"}, ""),
        ({"kind": "press", "value": "Escape"}, ""),
    ],
)
def test_a_selector_is_an_id_or_role_and_name_or_a_path(action, selector):
    assert selector_of(ActionModel(**{"kind": "click", **action})) == selector
