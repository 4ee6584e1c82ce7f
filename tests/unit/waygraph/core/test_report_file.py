"""Report files: complete in themselves, with texts of sites as data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.core.report_file import ReportFile


def parts(html: str) -> tuple[dict[str, Any], str, str]:
    """Return the content of a report, its script and its styles."""
    (content,) = re.findall(r'<script type="application/json" id="content">(.*?)</script>', html, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    return json.loads(content), script, style


@given(st.text())
def test_any_text_is_one_value_of_the_content(text: str) -> None:
    title = f"</script><!--{text}<script>"
    document, _, _ = parts(ReportFile("site", title, {"text": text}).html())
    assert document["title"] == title
    assert document["content"] == {"text": text}


def test_lone_surrogates_are_replaced() -> None:
    document, _, _ = parts(ReportFile("site", "cut \ud83d", {}).html())
    assert document["title"] == "cut \ufffd"


def test_images_are_data_urls() -> None:
    document, _, _ = parts(ReportFile("run", "Run", {}, {"a": b"\xff\xd8\xffjpeg"}).html())
    assert document["images"] == {"a": "data:image/jpeg;base64," + base64.b64encode(b"\xff\xd8\xffjpeg").decode()}


def test_the_policy_allows_the_script_and_styles_of_the_page_and_nothing_else() -> None:
    html = ReportFile("site", "x", {}).html()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    directives = dict(each.split(" ", 1) for each in policy.split("; "))
    _, script, style = parts(html)
    for text, name in ((script, "script-src"), (style, "style-src")):
        assert directives[name] == f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
    assert (directives["default-src"], directives["img-src"]) == ("'none'", "data:")


def test_the_page_names_no_other_file() -> None:
    html = ReportFile("site", "x", {}).html()
    assert re.findall(r"<(?:link|img|iframe)\b|\bsrc=|url\(", html.partition("<script")[0]) == []


def test_a_number_that_json_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="JSON"):
        ReportFile("site", "x", {"rate": float("nan")}).html()
