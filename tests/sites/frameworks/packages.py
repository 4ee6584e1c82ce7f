"""Frameworks of the fixture apps: pinned npm packages, downloaded once into a cache folder.

Nothing is built: pages load the packages' own browser builds. React ships CommonJS only, which `common_js` wraps.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

PINNED = {
    "react": "19.3.1",
    "react-dom": "19.3.1",
    "scheduler": "0.28.0",
    "vue": "3.5.45",
    "vue-router": "5.5.1",
    "angular": "1.8.3",
    "angular-route": "1.8.3",
    "@angular/core": "22.2.6",
    "@angular/common": "22.2.6",
    "@angular/compiler": "22.2.6",
    "@angular/platform-browser": "22.2.6",
    "@angular/router": "22.2.6",
    "rxjs": "7.8.2",
    "lit": "3.3.3",
    "lit-html": "3.3.3",
    "lit-element": "4.2.2",
    "@lit/reactive-element": "2.1.2",
}

_FETCH_LIMIT_S = 120


class PackagesMissing(Exception):
    """The packages are not there and cannot be fetched; the message says why."""


def folder_of(name: str) -> str:
    """Folder of a package inside the cache, its version included."""
    return f"{name.replace('@', '').replace('/', '-')}-{PINNED[name]}"


def fetch(cache: Path) -> Path:
    """Have all of `PINNED` unpacked in `cache`, by `npm pack`, and return it.

    Raises
    ------
    PackagesMissing
        When npm is not installed or cannot fetch them.
    """
    missing = [name for name in PINNED if not (cache / folder_of(name)).is_dir()]
    if not missing:
        return cache
    npm = shutil.which("npm")
    if npm is None:
        raise PackagesMissing("npm is not installed")
    with tempfile.TemporaryDirectory(dir=cache) as work:
        specs = [f"{name}@{PINNED[name]}" for name in missing]
        command = [npm, "pack", "--silent", "--ignore-scripts", "--pack-destination", work, *specs]
        try:
            done = subprocess.run(
                command, cwd=work, capture_output=True, text=True, timeout=_FETCH_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise PackagesMissing(f"npm did not fetch the packages within {_FETCH_LIMIT_S} s") from None
        if done.returncode:
            raise PackagesMissing(f"npm cannot fetch the packages: {done.stderr.strip()[-300:]}")
        for name in missing:
            unpacked = Path(work) / "unpacked" / folder_of(name)
            with tarfile.open(Path(work) / f"{folder_of(name)}.tgz") as archive:
                archive.extractall(unpacked, filter="data")
            # At once, so that another test process sees all of it or nothing.
            (unpacked / "package").rename(cache / folder_of(name))
    return cache


def import_map(cache: Path, names: tuple[str, ...]) -> str:
    """An import map (JSON) for the ES modules of some packages, as they are served under `/packages/`."""
    imports = {}
    for name in names:
        root = f"/packages/{folder_of(name)}/"
        exports = json.loads((cache / folder_of(name) / "package.json").read_text(encoding="utf-8"))["exports"]
        for entry, target in exports.items():
            path = _for_browsers(target)
            if "*" not in entry and path.endswith((".js", ".mjs")):
                imports[name + entry.removeprefix(".")] = root + path.removeprefix("./")
    return json.dumps({"imports": imports})


def _for_browsers(target: str | dict[str, object]) -> str:
    while not isinstance(target, str):
        target = target.get("browser", target.get("default", ""))  # type: ignore[assignment]
    return target


def common_js(cache: Path, files: dict[str, str]) -> str:
    """One script of CommonJS modules, `files` by the name they are required by, which defines `load(name)`."""
    modules = []
    for name, path in files.items():
        package, _, inside = path.partition(":")
        source = (cache / folder_of(package) / inside).read_text(encoding="utf-8")
        modules.append(f"{json.dumps(name)}: (module, exports, require) => {{\n{source}\n}}")
    sources = ",\n".join(modules)
    return f"""globalThis.load = (() => {{
const sources = {{ {sources} }};
const loaded = {{}};
return function require(name) {{
  if (!loaded[name]) {{ const module = loaded[name] = {{ exports: {{}} }}; sources[name](module, module.exports, require); }}
  return loaded[name].exports;
}};
}})();
"""


def rxjs_module(cache: Path) -> str:
    """RxJS as one ES module around its one-file build; its own modules are some two hundred files."""
    root = cache / folder_of("rxjs")
    index = (root / "dist/esm/index.js").read_text(encoding="utf-8")
    operators = (root / "dist/esm/operators/index.js").read_text(encoding="utf-8")
    bundle = (root / "dist/bundles/rxjs.umd.min.js").read_text(encoding="utf-8")
    names = {
        name.rpartition(" ")[2] for group in re.findall(r"export \{ ([^}]+) \}", index) for name in group.split(", ")
    }
    more = {n.rpartition(" ")[2] for group in re.findall(r"export \{ ([^}]+) \}", operators) for n in group.split(", ")}
    lines = [f"export const {name} = all.{name};" for name in sorted(names)]
    lines += [f"export const {name} = all.operators.{name};" for name in sorted(more - names)]
    return f"const all = (function () {{ {bundle}\nreturn this.rxjs; }}).call({{}});\n" + "\n".join(lines)
