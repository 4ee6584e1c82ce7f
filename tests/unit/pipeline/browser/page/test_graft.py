"""The content of a cross-origin frame is inserted where the frame is."""

import pytest

from waygraph.core.urls import UrlPolicy
from waygraph.index.graph import element_hash
from waygraph.pipeline.browser.page.frame_scope import FrameScope
from waygraph.pipeline.browser.page.graft import graft
from waygraph.pipeline.browser.page.snapshot import parse_snapshot

_BOX = (0, 0, 9, 9)
#: Method, handler, icon, covered, form and listener of a candidate.
_PLAIN = ("", "", "", False, "", "")


def told(url, steps, candidates=(), segments=(), **more):
    """An answer of the in-page script for a document whose elements are children of each other."""
    return {
        "url": url, "title": "", "contentType": "text/html", "status": 200, "documents": [[]],
        "steps": "\n".join(steps), "parents": list(range(-1, len(steps) - 1)), "unexposed": [],
        "linkedData": [], "ownLists": [], "canonical": "", "mayGrow": False,
        "tools": [], "toolsCut": 0, "schemasCut": 0,
        "candidates": [
            ["click", "", "button", name, place, 0, "", "", "button", False, "", False, 0, *_PLAIN, *_BOX]
            for name, place in candidates
        ],
        "segments": [[text, "text", 0, 0, 9, 9] for text in segments],
        "hidden": [], "links": [], "linksCut": 0,
        "settled": {"capped": False, "waited": False, "waiting": [], "ended": []},
        "opened": 0, "tabs": [], "stopped": [], "dialogs": [],
        "storage": {"local": {}, "session": {}}, "password": False, "login": False,
        "digest": "d", "cut": False, "ms": 1.0,
        "banner": None, "crossOrigin": [], "outline": [], "view": None, **more,
    }  # fmt: skip


def grafted():
    outer = told("http://a/", ["/html[1]", "/iframe[1]"], [("Before", 0), ("After", 0)], ["before", "after"])
    outer["banner"] = [1, "close"]
    inner = told("http://b/", ["/html[1]", "/p[1]"], [("Inside", 1)], ["inside"], password=True)
    inner["storage"]["local"] = {"k": "v"}
    graft(outer, inner, {"path": ["/html[1]/iframe[1]"], "candidates": 1, "segments": 1})
    return outer


def test_elements_get_paths_with_the_frames_hop():
    seen = parse_snapshot(grafted(), UrlPolicy())
    hop = ("/html[1]/iframe[1]",)
    hashes = [element_hash(path) for path in ("/html[1]", "/html[1]/iframe[1]")]
    hashes += [element_hash(path, hop) for path in ("/html[1]", "/html[1]/p[1]")]
    assert seen.structure == tuple(sorted(hashes))
    assert [(c.action.name, c.action.frame, c.action.xpath) for c in seen.candidates] == [
        ("Before", (), "/html[1]"),
        ("Inside", hop, "/html[1]/p[1]"),
        ("After", (), "/html[1]"),
    ]


def test_texts_and_banner_keep_their_positions():
    seen = parse_snapshot(grafted(), UrlPolicy())
    assert [segment.text for segment in seen.segments] == ["before", "inside", "after"]
    assert seen.banner is not None
    assert seen.banner.action.name == "After"


def test_the_accessibility_tree_of_a_frame_is_below_the_frames_node():
    outer = told("http://a/", ["/html[1]", "/iframe[1]"], [("Before", 0), ("After", 0)])
    outer["outline"] = [
        [0, "button", "Before", [], 0], [0, "Iframe", "Chat", [], -1], [0, "button", "After", [["pressed", "true"]], 1],
    ]  # fmt: skip
    inner = told("http://b/", ["/html[1]", "/p[1]"], [("Inside", 1)])
    inner["outline"] = [[0, "main", "", [], -1], [1, "button", "Inside", [], 0]]
    place = {"path": ["/html[1]/iframe[1]"], "candidates": 1, "segments": 0, "outline": {"at": 2, "depth": 1}}
    graft(outer, inner, place)
    seen = parse_snapshot(outer, UrlPolicy())
    assert [(row.depth, row.name, row.candidate) for row in seen.outline] == [
        (0, "Before", 0), (0, "Chat", -1), (1, "", -1), (2, "Inside", 1), (0, "After", 2),
    ]  # fmt: skip
    assert seen.candidates[2].action.name == "After"
    assert seen.outline[4].states == (("pressed", "true"),)


def test_storage_and_requests_of_a_frame_count_for_the_page():
    seen = parse_snapshot(grafted(), UrlPolicy())
    assert seen.password
    assert seen.storage["frames"] == {"http://b/ local k": "v"}


def test_hidden_frame_adds_only_its_storage():
    outer = told("http://a/", ["/html[1]"])
    graft(outer, told("http://b/", ["/html[1]"], [("Inside", 0)], ["inside"]), None)
    seen = parse_snapshot(outer, UrlPolicy())
    assert (len(seen.structure), seen.candidates, seen.segments) == (1, (), ())


@pytest.mark.parametrize(
    ("url", "is_ours"),
    [
        ("http://a/x", True),
        ("https://a/x", True),
        ("http://named:81/", True),
        ("http://named/", False),
        ("https://cdn.shop.example:8443/", True),
        ("https://notshop.example/", False),
        ("about:srcdoc", True),
        ("chrome-extension://viewer/", False),
        ("data:text/html,x", False),
    ],
)
def test_frames_of_hosts_in_scope_are_captured(url, is_ours):
    assert FrameScope(frozenset({"named:81"}), "shop.example").covers(url, "http://a/") is is_ours
