"""Small apps in the frameworks that people use, all with the same abilities, and what exploring each of them finds.

Every app has views (home, list, two items, about) behind addresses of its own, by the history or by the fragment. Those
by the history also show in place: a menu, a modal dialog, tabs, boxes that react to a click, a double click and the
pointer, and a field that reacts to a key. What is found is called `APP-NAME`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.sites.answers import Area, Expect, shows, states
from tests.sites.frameworks.packages import common_js, folder_of, import_map, rxjs_module
from tests.sites.server import Answer, Page

HERE = Path(__file__).parent
VIEWS = ("", "list", "item/1", "item/2", "about")


@dataclass(frozen=True, slots=True)
class Framework:
    """A framework and the script of its app (`apps/NAME.js`).

    Attributes
    ----------
    scripts : classic scripts, as PACKAGE:PATH, or served paths.
    modules : packages whose ES modules the app imports.
    fragment : how routes look in the fragment.
    """

    name: str
    scripts: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    fragment: str = "#/"


FRAMEWORKS = (
    Framework("react", scripts=("/packages/react.js",)),
    Framework("vue", scripts=("vue:dist/vue.global.prod.js", "vue-router:dist/vue-router.global.prod.js")),
    Framework("angularjs", scripts=("angular:angular.min.js", "angular-route:angular-route.min.js"), fragment="#!/"),
    Framework(
        "angular",
        modules=(
            "@angular/core",
            "@angular/common",
            "@angular/compiler",
            "@angular/platform-browser",
            "@angular/router",
        ),
    ),
    Framework("lit", modules=("lit", "lit-html", "lit-element", "@lit/reactive-element")),
    Framework("elements"),
)


def _answers(app: str, address: str) -> tuple[Expect, ...]:
    """What one app shows; `address` comes before the name of a view."""
    return (
        shows(f"{app}-home"),
        shows(f"{app}-list", by=f"{app} list"),
        shows(f"{app}-item-1", by=f"{app} item 1"),
        shows(f"{app}-item-2", by=f"{app} item 2"),
        shows(f"{app}-about", by=f"{app} about"),
        *(states(address + view, 1) for view in VIEWS[1:]),
    )


def _widgets(app: str) -> tuple[Expect, ...]:
    return (
        shows(f"{app}-choice", by=f"{app} choice"),
        shows(f"{app}-modal", by=f"{app} dialog"),
        shows(f"{app}-tab-2", by=f"{app} second tab"),
        shows(f"{app}-clicked", by=f"{app} plain box"),
        shows(f"{app}-twice", by=f"{app} double box"),
        shows(f"{app}-entered", by=f"{app} hover box"),
        shows(f"{app}-key", by=f"{app} key field"),
    )


def _page(cache: Path, framework: Framework, routing: str) -> str:
    app = f"{framework.name}-{routing}"
    scripts = []
    if framework.modules:
        known = import_map(cache, framework.modules)
        if "@angular/core" in framework.modules:
            known = known.replace(
                '{"imports": {', '{"imports": {"rxjs": "/packages/rxjs.mjs", "rxjs/operators": "/packages/rxjs.mjs", '
            )
        scripts.append(f"<script type=importmap>{known}</script>")
    for script in framework.scripts:
        package, _, path = script.partition(":")
        scripts.append(f"<script src={f'/packages/{folder_of(package)}/{path}' if path else script}></script>")
    kind = "type=module" if framework.modules else "defer"
    return f"""<!doctype html><html lang=en><head><title>{app}</title><base href=/{app}/>{"".join(scripts)}
    <script>const APP = '{app}', ROUTING = '{routing}', BASE = '/{app}/'</script>
    <script {kind} src=/apps/{framework.name}.js></script></head><body><div id=app></div></body></html>"""


def areas(cache: Path) -> tuple[Area, ...]:
    """One area per framework and way of routing, with the packages in `cache`. The first one serves all of them."""
    served: dict[str, Answer] = {f"/apps/{f.name}.js": HERE / "apps" / f"{f.name}.js" for f in FRAMEWORKS}
    react = common_js(
        cache,
        {
            "react": "react:cjs/react.production.js",
            "scheduler": "scheduler:cjs/scheduler.production.js",
            "react-dom": "react-dom:cjs/react-dom.production.js",
            "react-dom/client": "react-dom:cjs/react-dom-client.production.js",
        },
    )
    served["/packages/react.js"] = _kept(react)
    served["/packages/rxjs.mjs"] = _kept(rxjs_module(cache))
    for framework in FRAMEWORKS:
        for script in framework.scripts:
            package, _, path = script.partition(":")
            if path:
                served[f"/packages/{folder_of(package)}/{path}"] = _kept(cache / folder_of(package) / path)
        for package in framework.modules:
            root = cache / folder_of(package)
            for path in root.rglob("*.*js"):
                served[f"/packages/{folder_of(package)}/{path.relative_to(root).as_posix()}"] = _kept(path)
    found = []
    for framework in FRAMEWORKS:
        app = f"{framework.name}-history"
        html = _page(cache, framework, "history")
        pages: Mapping[str, Answer] = {f"/{app}/{view}": html for view in VIEWS}
        found.append(Area(app, {**pages, **served}, (*_answers(app, f"/{app}/"), *_widgets(app))))
        app = f"{framework.name}-hash"
        html = _page(cache, framework, "hash")
        found.append(Area(app, {f"/{app}/": html}, _answers(app, f"/{app}/{framework.fragment}")))
        served = {}
    return tuple(found)


def _kept(body: str | Path) -> Page:
    """A script that browsers may keep: else every view would load its framework anew."""
    return Page(body, content_type="text/javascript", headers={"Cache-Control": "max-age=3600"})
