"""Requests of web pages of other sites are refused by a service without keys, on every route."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from starlette.datastructures import Headers

from waygraph.core.settings import ServeSettings, Settings
from waygraph.serve.http.api import create_api
from waygraph.serve.http.hosts import HostCheck
from waygraph.serve.query.maps import Maps

OWN = [
    "localhost",
    "LOCALHOST:8321",
    "localhost.",
    "127.0.0.1",
    "127.0.0.1:8321",
    "127.8.9.1:80",
    "[::1]",
    "[::1]:1",
]
FOREIGN = [
    "evil.example", "evil.example:8321", "localhost.evil.example", "127.0.0.1.evil.example", "xlocalhost",
    "0.0.0.0:8321", "2130706433", "127.1", "[::]", "[::ffff:10.0.0.1]", "10.0.0.1", "localhost@evil.example",
    "evil.example@localhost", "localhost/evil.example", "localhost:80:80", "[::1", "", " localhost",
    "localhost,evil.example", "löcalhost",
]  # fmt: skip


def status(check: HostCheck, *headers: tuple[str, str]) -> int:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    refusal = check.refusal(Headers(raw=raw), instance="/v1/sites")
    return 200 if refusal is None else refusal.status_code


@pytest.mark.parametrize(
    ("hosts", "expected"), [*(([host], 200) for host in OWN), *(([host], 421) for host in FOREIGN), ([], 200),
                            (["localhost", "evil.example"], 421), (["evil.example", "localhost"], 421)],
)  # fmt: skip
def test_only_names_of_the_service_pass(hosts: list[str], expected: int) -> None:
    check = HostCheck(ServeSettings(), with_keys=False)
    assert status(check, *(("host", host) for host in hosts)) == expected


def test_the_bound_and_the_configured_names_pass_too() -> None:
    check = HostCheck(ServeSettings(host="Mine", hosts=("maps.example",)), with_keys=False)
    for host in ("mine", "mine:8321", "maps.example", "Maps.Example:443"):
        assert status(check, ("host", host)) == 200
        assert status(check, ("host", host), ("origin", f"https://{host}")) == 200
    assert status(check, ("host", "other.example")) == 421


def test_with_keys_every_name_passes() -> None:
    """Behind an ingress, and for probes by the address of a pod."""
    check = HostCheck(ServeSettings(), with_keys=True)
    for host in (*OWN, *FOREIGN):
        assert (
            status(check, ("host", host), ("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")) == 200
        )


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"origin": "http://localhost:8321"}, 200),
        ({"origin": "http://127.0.0.1:3000", "sec-fetch-site": "cross-site"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "file://"}, 403),
        ({"origin": "chrome-extension://localhost"}, 403),
        ({"sec-fetch-site": "same-origin", "sec-fetch-dest": "image"}, 200),
        ({"sec-fetch-site": "none", "sec-fetch-dest": "document"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-dest": "iframe"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-dest": "image"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-dest": "empty"}, 403),
    ],
)
def test_requests_of_pages_of_other_sites_are_refused(headers: dict[str, str], expected: int) -> None:
    check = HostCheck(ServeSettings(), with_keys=False)
    assert status(check, ("host", "localhost:8321"), *headers.items()) == expected


async def test_every_route_refuses_a_name_that_points_to_loopback(tmp_path: Path) -> None:
    settings = Settings(store=str(tmp_path))
    app = create_api(settings, Maps(settings))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8321") as http:
        described = (await http.get("/openapi.json")).json()["paths"]
        calls = [(method, path) for path, methods in described.items() for method in methods]
        others = (
            "/",
            "/ui/x.js",
            "/mcp",
            "/mcp/",
            "/metrics",
            "/openapi.json",
            "/docs",
            "/v1/sites/",
            "/nothing",
            "//x",
        )
        for method, path in (*calls, *(("get", path) for path in others), ("post", "/mcp"), ("options", "/v1/sites")):
            refused = await http.request(method, path, headers={"host": "evil.example:8321"})
            assert (refused.status_code, refused.headers["content-type"]) == (421, "application/problem+json"), path
            assert "location" not in refused.headers
            assert "evil" not in refused.text
            assert refused.headers["x-content-type-options"] == "nosniff"
