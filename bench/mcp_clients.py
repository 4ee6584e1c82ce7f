"""Check of the MCP endpoint with clients of others: the protocol's conformance suite and the inspector.

    python -m bench.mcp_clients --scratch FOLDER [--save]

Maps the demo shop, serves the map as `waygraph serve` does, and lets both programs, installed from npm into
FOLDER, talk to `/mcp`. Needs Node 22.19 or newer, which the inspector asks for.

- The conformance suite runs its scenarios for servers. Most of them call tools, prompts and resources of a reference
  server by name; those of `SCENARIOS` ask for what every server has that offers tools over HTTP without sessions.
- The inspector lists the tools, and calls those that need no browser.

The check fails if a scenario or a call does. --save writes bench/results/mcp-clients.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.result_files import RESULTS, run_info, write_result
from bench.serve_process import Service
from waygraph.demo_site import DemoSite

RESULT = RESULTS / "mcp-clients.json"
CONFORMANCE = "@modelcontextprotocol/conformance@0.1.16"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
SCENARIOS = ("server-initialize", "ping", "tools-list", "dns-rebinding-protection")


def install(folder: Path) -> Path:
    """Install both programs into a folder, and return the folder with their commands."""
    options = ["--silent", "--no-audit", "--no-fund", f"--prefix={folder}"]
    subprocess.run(["npm", "install", *options, CONFORMANCE, INSPECTOR], check=True)
    return folder / "node_modules" / ".bin"


def conformance(commands: Path, url: str) -> dict[str, dict[str, Any]]:
    """Return what each check of each scenario says."""
    found: dict[str, dict[str, Any]] = {}
    for scenario in SCENARIOS:
        with tempfile.TemporaryDirectory() as out:
            options = ["--url", url, "--scenario", scenario, "--output-dir", out]
            subprocess.run([commands / "conformance", "server", *options], stdout=subprocess.DEVNULL, check=False)
            checks = [check for file in Path(out).rglob("checks.json") for check in json.loads(file.read_text("utf-8"))]
        found[scenario] = {check["id"]: check["status"] for check in checks}
    return found


def inspected(commands: Path, url: str, site: str) -> dict[str, Any]:
    """Return what the inspector gets: the names of the tools, and the texts of three calls."""
    calls: Mapping[str, Mapping[str, str]] = {
        "list_sites": {},
        "search_screens": {"site": site, "query": "How much tax do customers in Finland pay?"},
        "find_tools": {"site": site, "query": "find products by words"},
    }

    def asked(method: str, *options: str) -> Any:
        command = [str(commands / "mcp-inspector"), "--cli", url, "--transport", "http", "--method", method, *options]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)

    answers = {}
    for tool, arguments in calls.items():
        given = [word for name, value in arguments.items() for word in ("--tool-arg", f"{name}={value}")]
        answers[tool] = asked("tools/call", "--tool-name", tool, *given)
    return {
        "tools": [tool["name"] for tool in asked("tools/list")["tools"]],
        "answered": {
            tool: bool(answer.get("content")) and not answer.get("isError") for tool, answer in answers.items()
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    commands = install(options.scratch.resolve())
    store = options.scratch.resolve() / "store"
    with DemoSite() as site:
        host = urlsplit(site.url).netloc
        index = [sys.executable, "-m", "waygraph", "index", site.url, "--depth", "2", "--store", store]
        subprocess.run(index, check=True)
    with Service(str(store)) as service:
        scenarios = conformance(commands, f"{service.url}/mcp")
        calls = inspected(commands, f"{service.url}/mcp", host)
    node = subprocess.run(["node", "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    document = {
        "run": {**run_info(), "node": node, "conformance": CONFORMANCE, "inspector": INSPECTOR},
        "scenarios": scenarios,
        "inspector": calls,
    }
    print(json.dumps(document, indent=1))
    if options.save:
        write_result(RESULT, document)
    passed = all(checks and set(checks.values()) <= {"SUCCESS", "INFO"} for checks in scenarios.values())
    return 0 if passed and all(calls["answered"].values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
