"""Pages whose scripts replace global names and functions of prototypes, as old libraries and applications do.

Each page links to the others and has a button that opens a box with a late text, so that mapping it and walking to its
states needs everything that our scripts do in a page: find, act, settle, take a snapshot.
"""

from __future__ import annotations

from tests.sites.answers import page

#: What is replaced, by name. The first ones are of libraries: PrototypeJS, MooTools, Datejs, a map library, old polyfills.
SCRIPTS = {
    "json-of-prototypes": """for (const of of [Object, Array, String, Number, Date]) Object.defineProperty(of.prototype, 'toJSON',
        {value() { return 'text of a library'; }, configurable: true, writable: true})""",
    "array-methods": """Array.from = (list) => ({length: 0, list});
        Array.prototype.find = Array.prototype.filter = Array.prototype.map = function (what) { return {what}; };
        Array.prototype.reduce = Array.prototype.some = Array.prototype.every = () => undefined""",
    "own-map": "window.Map = class Map { constructor(at) { this.at = at; } addLayer() {} }",
    "map-object": "window.Map = {layers: [], init() {}}; window.Set = {of: []}",
    "own-collections": """for (const name of ['Set', 'WeakMap', 'WeakSet', 'URL'])
        window[name] = class { constructor() { this.items = []; } }""",
    "collection-methods": """Map.prototype.get = Map.prototype.set = Set.prototype.has = WeakMap.prototype.get = () => 'mine';
        String.prototype.trim = String.prototype.replace = String.prototype.includes = () => 'mine'""",
    "own-event": "window.Event = class Event { constructor(name) { this.name = name; } fire() {} }; window.UIEvent = Event",
    "own-node": "window.Node = class Node {}; window.Element = class Element {}; window.HTMLElement = Node",
    "own-json": "window.JSON = {stringify: () => 'mine', parse: () => 'mine'}",
    "own-date": "window.Date = class { now() {} }; window.Math = {max: () => 0}; window.performance = {}",
    "own-promise": "window.Promise = class { then() {} }",
    "own-symbol": "window.Symbol = function () {}",
    "own-object": "window.Reflect = {}; window.Object = function () {}",
    "element-methods": """Element.prototype.getAttribute = Element.prototype.matches = Element.prototype.closest = () => 'mine';
        Element.prototype.getBoundingClientRect = () => ({}); window.getComputedStyle = () => ({})""",
}

BUTTON = '<button onclick="timeout(() => box.hidden = false, 200)">Open</button><p id=box hidden><b>Opened</b></p>'


def pages() -> dict[str, str]:
    """The start page, and for each name two pages that replace what it says."""
    links = "".join(f"<li><a href=/{name}>Page {name}</a>" for name in SCRIPTS)
    site = {"/": page(f"<h1>Replaced</h1><ul>{links}</ul>")}
    for name, script in SCRIPTS.items():
        head = f"<script>const timeout = setTimeout; {script};</script><h1>About {name}</h1><hr>"
        site[f"/{name}"] = page(f"{head}{BUTTON} <a href=/{name}/next>Next of {name}</a>", title=name)
        site[f"/{name}/next"] = page(
            f"{head}<h2>Second page</h2><hr><a href=/{name}>Back to {name}</a>", title=f"Next {name}"
        )
    return site
