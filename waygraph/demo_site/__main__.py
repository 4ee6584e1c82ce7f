"""Serve the demo shop for people: `python -m waygraph.demo_site --port 8000`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading

from waygraph.demo_site import DemoSite


def main() -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m waygraph.demo_site", description="Serve waygraph's demo shop.")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on; 0 for any free one")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    options = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        site = DemoSite(port=options.port, host=options.host).start()
    except OSError as error:
        print(f"Cannot listen on {options.host}:{options.port}: {error.strerror}. Try another --port.", file=sys.stderr)  # noqa: T201
        return 1
    print(f"The demo shop is open at {site.url} (Ctrl-C closes it).", flush=True)  # noqa: T201
    stop.wait()
    site.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
