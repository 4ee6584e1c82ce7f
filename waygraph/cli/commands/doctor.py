"""`waygraph doctor`: check that everything is installed, and print how to fix what is not."""

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
from waygraph.core.errors import EnvironmentMissing, InvalidInput, NoStore, WaygraphError
from waygraph.core.settings import Settings

_MINIMUM_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check.

    Attributes
    ----------
    part
        What was checked.
    ok
        Whether the check passed.
    found
        What was found, or why the check failed.
    fix
        How to fix a failure.
    needed
        Whether a failure is an error; parts that are not needed may be missing.
    checked
        Whether the part exists and was tested, so that a failure means wrong rather than missing.
    """

    part: str
    ok: bool
    found: str
    fix: str = ""
    needed: bool = True
    checked: bool = False

    @property
    def state(self) -> str:
        """Result as the table shows it."""
        return "ok" if self.ok else "wrong" if self.checked else "missing" if self.needed else "none"


def check_python() -> Finding:
    """Check the version of Python."""
    ok = sys.version_info >= _MINIMUM_PYTHON
    return Finding("Python", ok, platform.python_version(), "" if ok else "Install Python 3.11 or newer.")


def check_browser(settings: Settings) -> Finding:
    """Check that a Chromium can be found."""
    from waygraph.pipeline.browser.process.find import find_browser

    try:
        browser = find_browser(settings.browser.executable)
    except WaygraphError as error:
        return Finding("browser", ok=False, found=error.message, fix=error.hint)
    return Finding("browser", ok=True, found=f"{browser.path} ({browser.source})")


def check_package(part: str, module: str, distribution: str, extra: str) -> Finding:
    """Check that a library is installed and can be imported.

    Parameters
    ----------
    part
        Name of the library in the output.
    module
        Module to import.
    distribution
        Name of its package.
    extra
        Extra of waygraph that installs it.

    Returns
    -------
    Finding
        With the installed version.
    """
    fix = f"Run: pip install 'waygraph[{extra}]'"
    try:
        version = metadata.version(distribution)
        import_module(module)
    except (ImportError, OSError) as error:
        # OSError: one of its shared libraries cannot be loaded.
        return Finding(part, ok=False, found=f"{type(error).__name__}: {error}", fix=fix)
    return Finding(part, ok=True, found=version)


def check_gpu() -> Finding:
    """Check for a CUDA device, which is optional."""
    fix = "Optional: the default encoder runs on the CPU. To use a GPU, install a CUDA build of torch (README.md)."
    try:
        import torch
    except (ImportError, OSError):
        return Finding("GPU", ok=False, found="unknown: torch is not installed", fix=fix, needed=False)
    if not torch.cuda.is_available():
        return Finding("GPU", ok=False, found="none that torch can use", fix=fix, needed=False)
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return Finding("GPU", ok=True, found=", ".join(names), needed=False)


def check_weights(settings: Settings) -> Finding:
    """Check that the weights of the text encoder in use are on this machine, without downloading them."""
    part = "encoder weights"
    try:
        from waygraph.pipeline.encode.text.weights import find_weights

        weights = find_weights(settings.encode.weights, settings.encode.encoder, allow_hub=False)
    except WaygraphError as error:
        return Finding(part, ok=False, found=error.message, fix=error.hint)
    except ImportError as error:
        return Finding(part, ok=False, found=str(error), fix="Run: pip install 'waygraph[index,weights]'")
    return Finding(part, ok=True, found=f"{weights.folder} ({weights.source})")


def check_encoder(settings: Settings, oracle: Path | None) -> list[Finding]:
    """Load an encoder and check what it computes: seconds on a GPU, minutes on a CPU.

    Parameters
    ----------
    settings
        Settings with the encoder.
    oracle
        File with vectors of another implementation to compare with.

    Returns
    -------
    list of Finding
        One per check.
    """
    name = settings.encode.encoder
    try:
        from waygraph.index.graph import SegmentCounts
        from waygraph.pipeline.encode.parity import MemoryScreenshots, compare_with_oracle, examine
        from waygraph.pipeline.encode.registry import create_encoder

        screenshots = MemoryScreenshots()
        encoder = create_encoder(settings.encode, screenshots)
        context = encoder.prepare_site(SegmentCounts(0, {}, {}))
        dtype = context.get("recipe", {}).get("dtype", "float32")
        checks = list(examine(encoder, screenshots, context=context, dtype=dtype))
        if name == "jina-v4":
            from waygraph.pipeline.encode.vision.jina_v4.encoder import JinaV4Encoder
            from waygraph.pipeline.encode.vision.jina_v4.parity import examine_jina_v4

            assert isinstance(encoder, JinaV4Encoder)  # noqa: S101 - of that name
            checks += examine_jina_v4(encoder, screenshots)
        if oracle is not None:
            checks += compare_with_oracle(encoder, screenshots, oracle)
    except WaygraphError as error:
        return [Finding(name, ok=False, found=error.message, fix=error.hint)]
    except ImportError as error:
        return [Finding(name, ok=False, found=str(error), fix="Run: pip install 'waygraph[index]'")]
    fix = f"The weights of {name} differ from the published ones, or this is a bug: see docs/encoders.md."
    return [
        Finding(f"{name}: {check.name}", check.ok, check.found, "" if check.ok else fix, checked=True)
        for check in checks
    ]


def check_store(settings: Settings) -> Finding:
    """Check that the store can be read and written, or created if it does not exist yet."""
    location = settings.store
    if "://" not in location and not Path(location).exists():
        parent = next(folder for folder in Path(location).absolute().parents if folder.exists())
        ok = os.access(parent, os.W_OK | os.X_OK)
        fix = "" if ok else f"Make {parent} writable, or choose another folder with --store."
        return Finding("store", ok, f"{location} does not exist yet; the first `waygraph index` creates it", fix)
    try:
        from waygraph.index.store import Store

        sites = Store.open(location).sites()
    except NoStore:
        return Finding("store", ok=True, found=f"{location} is empty; the first `waygraph index` creates the store")
    except WaygraphError as error:
        return Finding("store", ok=False, found=error.message, fix=error.hint)
    except ImportError as error:
        return Finding("store", ok=False, found=str(error), fix="Run: pip install 'waygraph[index]'")
    if "://" not in location and not os.access(location, os.W_OK):
        return Finding("store", ok=False, found=f"{location} is not writable", fix="Change its permissions or --store.")
    return Finding("store", ok=True, found=f"{location}: {len(sites)} site{'s' if len(sites) != 1 else ''}")


def check_all(settings: Settings) -> list[Finding]:
    """Run all checks but those of an encoder."""
    checks: list[Callable[[], Finding]] = [
        check_python,
        partial(check_browser, settings),
        partial(check_package, "ONNX Runtime", "onnxruntime", "onnxruntime", "index"),
        check_gpu,
        partial(check_package, "Ray", "ray", "ray", "index"),
        partial(check_package, "Ray Serve", "ray.serve", "ray", "serve"),
        partial(check_package, "Qdrant Edge", "qdrant_edge", "qdrant-edge-py", "index"),
        *([partial(check_weights, settings)] if settings.encode.encoder in {"text", "text-large"} else []),
        partial(check_store, settings),
    ]
    return [check() for check in checks]


def doctor(
    *,
    store: StoreOption = None,
    encoder: Annotated[
        str | None,
        typer.Option("--encoder", metavar="NAME", help="Also load this encoder, and check what it computes."),
    ] = None,
    oracle: Annotated[
        Path | None,
        typer.Option("--oracle", metavar="FILE", help="File with vectors of another implementation to compare with."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that everything waygraph needs is installed, and print how to fix what is not.

    Exit code 6 if something that is needed is missing, or an encoder computes wrong vectors. Nothing is
    changed. Nothing is downloaded, except for the weights of an encoder that --encoder names.

    \b
    Examples:
      waygraph doctor
      waygraph doctor --store /data/maps --json
      waygraph doctor --encoder jina-v4
    """  # noqa: D301 - \b keeps the lines of an example together
    settings = load_settings({"store": store, "encode": {"encoder": encoder}})
    findings = check_all(settings)
    if encoder is not None:
        findings += check_encoder(settings, oracle)
    elif oracle is not None:
        raise InvalidInput("--oracle needs an encoder to compare.", hint="Name it: --encoder jina-v4.")
    failed = [finding for finding in findings if finding.needed and not finding.ok]
    if as_json:
        print_json({"ok": not failed, "checks": [asdict(finding) for finding in findings]})
    else:
        print_table(["part", "", "found"], [[f.part, f.state, f.found] for f in findings])
        for finding in findings:
            if finding.fix:
                say(f"\n{finding.part}: {finding.fix}")
        say("\nEverything needed is installed." if not failed else "")
    if failed:
        names = ", ".join(finding.part for finding in failed)
        verdict = "Wrong" if all(finding.checked for finding in failed) else "Missing"
        if as_json:
            raise typer.Exit(EnvironmentMissing.exit_code)
        raise EnvironmentMissing(f"{verdict}: {names}.", hint="The output above says how to fix each of them.")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", short_help="Check the installation, and print how to fix it.")(doctor)
