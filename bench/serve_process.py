"""The service under test of `bench.serve`, in its own processes; their CPU time and memory are read from outside."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import httpx
import psutil

from bench.builds import ROOT, Build
from bench.process_tree import Tree

SERVE = """
import json, sys
from waygraph.serve.runtime.app import run
from waygraph.core.settings import Settings
run(Settings.model_validate(json.loads(sys.argv[1])), on_ready=lambda url: print(url, flush=True))
"""
#: The same application without what a service adds: no limits, no keys of the proxy, no signals.
SERVE_UVICORN = """
import json, socket, sys
import uvicorn
from waygraph.core.settings import Settings
from waygraph.serve.http.api import create_api
from waygraph.serve.query.maps import Maps
settings = Settings.model_validate(json.loads(sys.argv[1]))
bound = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{bound.getsockname()[1]}", flush=True)
server = uvicorn.Server(uvicorn.Config(create_api(settings, Maps(settings)), access_log=False, log_level="warning"))
server.run([bound])
"""
_THIS_BUILD = Build("this build", ROOT, sys.executable)
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ([0-9.eE+-]+|NaN)$")


class Service:
    """`waygraph serve` over a store.

    Parameters
    ----------
    store : the store.
    build : what runs it.
    code : the script that serves; it prints its URL.
    serve : settings of the service.
    """

    def __init__(
        self,
        store: str,
        *,
        build: Build = _THIS_BUILD,
        code: str = SERVE,
        **serve: Any,
    ) -> None:
        began = time.monotonic()
        self._process = subprocess.Popen(
            [build.python, "-c", code, json.dumps({"store": store, "serve": {"port": 0, **serve}})],
            stdout=subprocess.PIPE,
            text=True,
            cwd=build.root,
            env=build.environment,
        )
        self.tree = Tree(psutil.Process(self._process.pid))
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url.startswith("http"), "the service did not start"
        with httpx.Client(transport=httpx.HTTPTransport(retries=3), trust_env=False, timeout=60) as http:
            while not http.get(f"{self.url}/readyz").is_success:  # polling: a script may print its URL before
                time.sleep(0.02)
        self.seconds_to_ready = time.monotonic() - began

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=60)

    def replicas(self) -> list[psutil.Process]:
        """Return the processes that answer."""
        found = []
        for each in self.tree.processes():
            with suppress(psutil.NoSuchProcess):  # one that was killed may still be a zombie
                if "ServeReplica:waygraph:maps" in " ".join(each.cmdline()):
                    found.append(each)
        return found

    def cpu_seconds(self, before: Mapping[str, float] | None = None) -> dict[str, float]:
        """CPU time of its processes so far, or since `before`, by what they are."""
        used = defaultdict[str, float](float)
        for each in self.tree.processes():
            try:
                times, name = each.cpu_times(), " ".join(each.cmdline())
            except psutil.NoSuchProcess:
                continue
            kind = next((kind for kind in ("ServeReplica", "ProxyActor", "ServeController") if kind in name), "ray")
            used[kind] += times.user + times.system
        return {kind: seconds - (before or {}).get(kind, 0.0) for kind, seconds in used.items()}

    def memory(self) -> dict[str, int]:
        """Bytes of the replicas: `anon` is their own, `file` is page cache that they map and that can be taken back."""
        held: Counter[str] = Counter()
        for each in self.replicas():
            for line in Path(f"/proc/{each.pid}/status").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in {"RssAnon", "RssFile"}:
                    held[name.removeprefix("Rss").lower()] += int(value.split()[0]) * 1024
        return dict(held)

    def measured(self) -> dict[str, float]:
        """Return the values of `/metrics`, by name and labels."""
        found = (_SAMPLE.match(line) for line in httpx.get(f"{self.url}/metrics", trust_env=False).text.splitlines())
        return {f"{m[1]}{{{m[2]}}}" if m[2] else m[1]: float(m[3]) for m in found if m}
