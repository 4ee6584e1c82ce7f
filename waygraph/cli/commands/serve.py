"""`waygraph serve`: answer agents over HTTP."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from waygraph.cli.options import JsonOption, StoreOption, settings_from_options
from waygraph.cli.output import say
from waygraph.core.settings import ServeSettings

_DEFAULTS = ServeSettings()


def serve(
    *,
    store: StoreOption = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Address to bind.", show_default=_DEFAULTS.host)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            help="Port to bind; 0: any free port.",
            show_default=str(_DEFAULTS.port),
            min=0,
            max=65535,
        ),
    ] = None,
    local: Annotated[
        bool | None,
        typer.Option("--local", help="Serve from one process, without Ray.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer search, locate, path and navigate over HTTP, until interrupted (Ctrl-C or SIGTERM).

    New versions are served without a restart. Binding an address beyond loopback requires API keys:
    a key file (waygraph keys), or WAYGRAPH_SERVE__API_KEYS (a JSON list of keys of at least 16 characters).

    \b
    Examples:
      waygraph serve
      waygraph serve --store maps --port 8400
      waygraph serve --local
      waygraph keys add my-agent --file keys.json
      WAYGRAPH_SERVE__KEYS_FILE=keys.json waygraph serve --host 0.0.0.0
    Then, in another terminal:
      curl http://127.0.0.1:8321/v1/sites
      waygraph search --url http://127.0.0.1:8321 example.org "contact address"
    """  # noqa: D301 - \b keeps the lines of an example together
    settings = settings_from_options(locals(), "serve")
    from waygraph.serve.runtime.app import run

    def announce(url: str) -> None:
        if as_json:
            # One line, so that a program that started the service can read the address as soon as it answers.
            sys.stdout.write(json.dumps({"url": url}) + "\n")
        else:
            say(f"Serving {settings.store} at {url}: open it in a web browser to see the maps.")
            say(f"API description: {url}/openapi.json. Press Ctrl-C to stop.")
        sys.stdout.flush()

    run(settings, on_ready=announce)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve", short_help="Answer agents over HTTP.")(serve)
