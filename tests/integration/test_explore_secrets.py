"""Secrets of a session are in no store, report or log, although the pages of the site contain all of them."""

import base64
import json
import logging

from tests.browsers import LOOPBACK_ONLY
from tests.exploring import explore_with
from tests.sites.server import FixtureServer, Page
from waygraph.core.settings import EncodeSettings, ExploreSettings, Settings
from waygraph.index.store import Store
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.pipeline.jobs.publishing.draft import encode_draft

PASSWORD, HEADER, COOKIE, TOKEN = "pw-5f1c2ab9", "key-91b2c3d4", "sid-77aa88bb", "tok-c0ffee42"


def guarded(body):
    """A page for visitors with password, header and cookie; it repeats everything that it was sent."""

    def answer(request):
        sent = {name.lower(): value for name, value in request.headers.items()}
        expected = "Basic " + base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
        if sent.get("authorization") != expected:
            return Page("who are you?", status=401, headers={"WWW-Authenticate": 'Basic realm="x"'})
        if sent.get("x-key") != HEADER or COOKIE not in sent.get("cookie", ""):
            return Page("not you", status=403)
        told = f"<p>{sent['x-key']} {sent['cookie']} {PASSWORD}</p><input type=password value={PASSWORD}>"
        return f"<!doctype html><title>{HEADER}</title>{body}{told}"

    return answer


def test_no_secret_is_in_the_store_or_the_logs(tmp_path, caplog):
    links = f'<a href="/in?access_token={TOKEN}">In</a><a href="/b">B</a>'
    links += f'<a href="http://elsewhere.example/?token={TOKEN}">Away</a>'
    button = f"<button onclick=\"fetch('/post?token={TOKEN}', {{method: 'POST', body: '1'}})\">More</button>"
    pages = {
        "/": guarded(links),
        "/b": guarded(f"<h1>B</h1>{button}"),
        "/in": guarded("<h1>In</h1><p>1</p>"),
    }
    with FixtureServer(pages) as site:
        host = site.url.split("/")[2]
        state = tmp_path / "state.json"
        cookie = {"name": "sid", "value": COOKIE, "domain": "127.0.0.1", "path": "/"}
        extra = {"expires": -1, "httpOnly": True, "secure": False, "sameSite": "Lax"}
        state.write_text(json.dumps({"cookies": [{**cookie, **extra}], "origins": []}))
        settings = Settings(
            store=str(tmp_path / "maps"),
            browser=LOOPBACK_ONLY,
            explore=ExploreSettings(
                basic_auth=f"ann:{PASSWORD}", headers={"X-Key": HEADER}, storage_state=state, workers=2, depth=2
            ),
        )
        with caplog.at_level(logging.DEBUG):
            capture = publish(site.url, settings)
        assert any(path.partition("?")[0] == "/in" for path in site.paths)
        assert site.mutations == 0
    assert capture.site == host
    assert len(capture.graph.nodes) == 3
    files = [path for path in (tmp_path / "maps").rglob("*") if path.is_file()]
    assert any(b"elsewhere.example" in path.read_bytes() for path in files)
    for secret in (PASSWORD, HEADER, COOKIE, TOKEN, base64.b64encode(f"ann:{PASSWORD}".encode()).decode()):
        assert [path.name for path in files if secret.encode() in contents(path)] == [], secret
        assert secret not in caplog.text
        assert secret not in repr(capture)


def publish(url, settings):
    """Explore as an actor does, and publish as the publisher does."""
    store = Store.open(settings.store, create=True)
    capture = explore_with(settings, url, blobs=store.blobs)
    store.publish(encode_draft(capture, settings, create_encoder(EncodeSettings())))
    return capture


def contents(path):
    """Return the bytes of a file; for tables also the texts of their columns, which are compressed in the file."""
    raw = path.read_bytes()
    if path.suffix == ".parquet" or raw[:4] == b"PAR1":
        import pyarrow.parquet

        raw += str(pyarrow.parquet.read_table(path).to_pylist()).encode(errors="replace")
    return raw
