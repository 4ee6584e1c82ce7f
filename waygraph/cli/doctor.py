"""`waygraph doctor`: is everything here that mapping, searching and serving need, and how is what is missing fixed?"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated

import typer

from waygraph.cli.options import JsonOption, StoreOption, load_settings
from waygraph.cli.output import print_json, print_table, say
from waygraph.errors import EnvironmentMissing, InvalidInput, NoStore, WaygraphError
from waygraph.settings import Settings

NEEDED_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Finding:
    """One row: a part, whether it is there, what was found, and how to fix it when it is missing."""

    part: str
    ok: bool
    found: str
    fix: str = ""
    needed: bool = True
    """Something works without it when False: its absence is no failure."""
    checked: bool = False
    """It was there and did not do what it should, rather than missing."""

    @property
    def state(self) -> str:
        """As the table shows it."""
        return "ok" if self.ok else "wrong" if self.checked else "missing" if self.needed else "none"


def check_python() -> Finding:
    """Python itself."""
    ok = sys.version_info >= NEEDED_PYTHON
    return Finding("Python", ok, platform.python_version(), "" if ok else "Install Python 3.11 or newer.")


def check_browser(settings: Settings) -> Finding:
    """A Chromium that can be started."""
    from pipeline.browser.find import find_browser

    try:
        browser = find_browser(settings.browser.executable)
    except WaygraphError as error:
        return Finding("browser", ok=False, found=error.message, fix=error.hint)
    return Finding("browser", ok=True, found=f"{browser.path} ({browser.source})")


def check_package(part: str, module: str, distribution: str, extra: str) -> Finding:
    """A library: installed, and importable on this machine."""
    fix = f"Run: pip install 'waygraph[{extra}]'"
    try:
        version = metadata.version(distribution)
        import_module(module)
    except (ImportError, OSError) as error:
        # OSError: a shared library of it cannot be loaded here.
        return Finding(part, ok=False, found=f"{type(error).__name__}: {error}", fix=fix)
    return Finding(part, ok=True, found=version)


def check_gpu() -> Finding:
    """A CUDA device: used when there is one, not needed."""
    fix = "Nothing to do: the default encoder runs on the CPU. For a GPU, install a CUDA build of torch (README.md)."
    try:
        import torch
    except (ImportError, OSError):
        return Finding("GPU", ok=False, found="unknown: torch is missing", fix=fix, needed=False)
    if not torch.cuda.is_available():
        return Finding("GPU", ok=False, found="none that torch can use", fix=fix, needed=False)
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return Finding("GPU", ok=True, found=", ".join(names), needed=False)


def check_weights(settings: Settings) -> Finding:
    """The default encoder's weights on this machine; nothing is downloaded here."""
    part = "encoder weights"
    try:
        from pipeline.encode.weights import find_weights

        weights = find_weights(settings.encode.weights, allow_hub=False)
    except WaygraphError as error:
        return Finding(part, ok=False, found=error.message, fix=error.hint)
    except ImportError as error:
        return Finding(part, ok=False, found=str(error), fix="Run: pip install 'waygraph[index,weights]'")
    return Finding(part, ok=True, found=f"{weights.folder} ({weights.source})")


def check_encoder(settings: Settings, oracle: Path | None) -> list[Finding]:
    """Load an encoder and see whether it computes what it should; seconds on a GPU, minutes on a CPU."""
    name = settings.encode.encoder
    try:
        from index.graph import SegmentCounts
        from pipeline.encode.parity import MemoryScreenshots, compare_with_oracle, examine
        from pipeline.encode.registry import create_encoder

        screenshots = MemoryScreenshots()
        encoder = create_encoder(settings.encode, screenshots)
        context = encoder.prepare_site(SegmentCounts(0, {}, {}))
        dtype = context.get("recipe", {}).get("dtype", "float32")
        checks = list(examine(encoder, screenshots, context=context, dtype=dtype))
        if name == "jina-v4":
            from pipeline.encode.jina_v4.encoder import JinaV4Encoder
            from pipeline.encode.jina_v4.parity import examine_jina_v4

            assert isinstance(encoder, JinaV4Encoder)  # noqa: S101 - that is its name
            checks += examine_jina_v4(encoder, screenshots)
        if oracle is not None:
            checks += compare_with_oracle(encoder, screenshots, oracle)
    except WaygraphError as error:
        return [Finding(name, ok=False, found=error.message, fix=error.hint)]
    except ImportError as error:
        return [Finding(name, ok=False, found=str(error), fix="Run: pip install 'waygraph[index]'")]
    fix = f"The copy of {name} is not what was published, or this is a bug: see docs/encoders.md."
    return [
        Finding(f"{name}: {check.name}", check.ok, check.found, "" if check.ok else fix, checked=True)
        for check in checks
    ]


def check_store(settings: Settings) -> Finding:
    """The store: readable, writable, of a schema we know. One that does not exist yet can be made."""
    location = settings.store
    if "://" not in location and not Path(location).exists():
        parent = next(folder for folder in Path(location).absolute().parents if folder.exists())
        ok = os.access(parent, os.W_OK | os.X_OK)
        fix = "" if ok else f"Make {parent} writable, or choose another folder with --store."
        return Finding("store", ok, f"{location} does not exist yet; the first `waygraph index` makes it", fix)
    try:
        from index.store import Store

        sites = Store.open(location).sites()
    except NoStore:
        return Finding("store", ok=True, found=f"{location} is empty; the first `waygraph index` makes a store of it")
    except WaygraphError as error:
        return Finding("store", ok=False, found=error.message, fix=error.hint)
    except ImportError as error:
        return Finding("store", ok=False, found=str(error), fix="Run: pip install 'waygraph[index]'")
    if "://" not in location and not os.access(location, os.W_OK):
        return Finding("store", ok=False, found=f"{location} is not writable", fix="Change its permissions or --store.")
    return Finding("store", ok=True, found=f"{location}: {len(sites)} site{'s' if len(sites) != 1 else ''}")


def examine(settings: Settings) -> list[Finding]:
    """Look at every part."""
    checks: list[Callable[[], Finding]] = [
        check_python,
        partial(check_browser, settings),
        partial(check_package, "torch", "torch", "torch", "index"),
        check_gpu,
        partial(check_package, "Ray", "ray", "ray", "index"),
        partial(check_package, "Ray Serve", "ray.serve", "ray", "serve"),
        partial(check_package, "Qdrant Edge", "qdrant_edge", "qdrant-edge-py", "index"),
        *([partial(check_weights, settings)] if settings.encode.encoder == "text" else []),
        partial(check_store, settings),
    ]
    return [check() for check in checks]


def doctor(
    *,
    store: StoreOption = None,
    encoder: Annotated[
        str | None,
        typer.Option("--encoder", metavar="NAME", help="Load this encoder, too, and check what it computes."),
    ] = None,
    oracle: Annotated[
        Path | None,
        typer.Option("--oracle", metavar="FILE", help="Vectors of another implementation to compare with."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that everything waygraph needs is here, and say how to fix what is missing.

    Exit code 6 when something that is needed is missing, or an encoder does not compute what it should. Nothing is
    changed, and nothing downloaded but an encoder that --encoder names and that is not on this machine.

    \b
    Examples:
      waygraph doctor
      waygraph doctor --store /data/maps --json
      waygraph doctor --encoder jina-v4
    """  # noqa: D301 - \b keeps the lines of an example together
    settings = load_settings({"store": store, "encode": {"encoder": encoder}})
    findings = examine(settings)
    if encoder is not None:
        findings += check_encoder(settings, oracle)
    elif oracle is not None:
        raise InvalidInput("--oracle compares an encoder.", hint="Name it: --encoder jina-v4.")
    missing = [finding for finding in findings if finding.needed and not finding.ok]
    if as_json:
        print_json({"ok": not missing, "checks": [asdict(finding) for finding in findings]})
    else:
        print_table(
            ["part", "", "found"],
            [[f.part, f.state, f.found] for f in findings],
        )
        for finding in findings:
            if finding.fix:
                say(f"\n{finding.part}: {finding.fix}")
        say("\nEverything needed is here." if not missing else "")
    if missing:
        names = ", ".join(finding.part for finding in missing)
        what = "Wrong" if all(finding.checked for finding in missing) else "Missing"
        if as_json:
            raise typer.Exit(EnvironmentMissing.exit_code)
        raise EnvironmentMissing(f"{what}: {names}.", hint="How to fix each is said above.")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", short_help="Check what is installed, and say how to fix it.")(doctor)
