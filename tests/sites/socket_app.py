"""Application that reads everything by POST and over a WebSocket, as home-automation and dashboard applications do.

Known answer: a plain visit shows five devices and a list. Without the messages that a visit sends, the page says that it
cannot connect. `SocketApp.changes` holds every message and request that changes something; exploring leaves it empty.
"""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from tests.sites.server import FixtureServer, Page
from waygraph.demo_site.local_server import Request

DEVICES = ("Lamp", "Heating", "Front door", "Garage", "Fan")
#: Message types that only read.
READS = {"auth", "get_states", "panel/config", "subscribe_events", "ping", "history/during_period"}

_SHELL = """<!doctype html><title>House</title><body><home-app></home-app><script>
const SOCKET = 'SOCKET_URL';
class HomeApp extends HTMLElement {
  constructor() { super(); this.root = this.attachShadow({mode: 'open'}); this.ids = 0; this.waiting = new Map(); }
  async connectedCallback() {
    this.root.innerHTML = '<p>Loading</p>';
    const token = await this.post('/auth/token', {client: 'frontend', code: 'a1b2c3d4e5f60718'}).catch(() => null);
    if (!token) return this.lost();
    this.socket = new WebSocket(SOCKET);
    const timer = setTimeout(() => this.lost(), 1500);
    this.socket.onclose = () => this.lost();
    this.socket.onmessage = async ({data}) => {
      const message = JSON.parse(data);
      if (message.type === 'auth_required') this.socket.send(JSON.stringify({type: 'auth', access_token: token.access_token}));
      else if (message.type === 'auth_ok') {
        const [states, panels] = await Promise.all([this.ask('get_states'), this.ask('panel/config', {locale: 'en'})]);
        this.ask('subscribe_events', {event_type: 'state_changed'});
        clearTimeout(timer);
        this.states = states; this.panels = panels;
        setInterval(() => this.ask('ping'), 250);
        this.show(location.hash.slice(2) || 'overview');
      } else this.waiting.get(message.id)?.(message.result);
    };
    addEventListener('hashchange', () => this.show(location.hash.slice(2) || 'overview'));
  }
  post(path, body) {
    return fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(body)})
      .then((answer) => answer.json());
  }
  ask(type, more = {}) {
    const id = ++this.ids;
    this.socket.send(JSON.stringify({id, type, ...more}));
    return new Promise((done) => this.waiting.set(id, done));
  }
  lost() { this.root.innerHTML = '<p>Unable to connect to the house.</p><button>Retry</button>'; }
  async show(panel) {
    const nav = this.panels.map((name) => `<a href="#/${name}">${name}</a>`).join(' ');
    this.root.innerHTML = `<nav>${nav}</nav><h1>${panel}</h1><div></div>`;
    this[panel]?.(this.root.querySelector('div'));
  }
  overview(box) {
    box.innerHTML = this.states.map((name) => `<p>${name} <button>Switch ${name}</button></p>`).join('')
      + '<button id=again>Refresh devices</button>';
    for (const button of box.querySelectorAll('p button')) button.onclick = () =>
      this.ask('call_service', {domain: 'light', service: 'switch', target: button.textContent});
    box.querySelector('#again').onclick = async () => {
      const states = await this.ask('get_states');
      box.insertAdjacentHTML('beforeend', `<section><h2>Fresh</h2><p>${states.length} devices answer</p></section>`);
    };
  }
  async list(box, page = 1) {
    const rows = await this.post('/api/list', {page, sort: 'name'});
    box.innerHTML = `<h2>Page ${page}</h2>` + rows.map((row) => `<p>${row}</p>`).join('')
      + '<button id=next>Next page</button><button id=keep>Keep this order</button>';
    box.querySelector('#next').onclick = () => this.list(box, page + 1);
    box.querySelector('#keep').onclick = () => this.post('/api/list', {page, sort: 'name', keep: 'order'});
  }
  async history(box) {
    const rows = await this.ask('history/during_period', {days: 7});
    box.innerHTML = rows.map((row) => `<p>${row}</p>`).join('');
  }
}
customElements.define('home-app', HomeApp);
</script>"""


class SocketApp:
    """The application with its WebSocket server. A context manager."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._lock = threading.Lock()
        self.changes: list[dict[str, Any]] = []
        self.reads: list[str] = []
        self.site = FixtureServer({})
        self._sockets = serve(self._talk, "127.0.0.1", 0)
        self._thread = threading.Thread(target=self._sockets.serve_forever, name="socket-app", daemon=True)

    @property
    def url(self) -> str:
        """Where the application starts."""
        return self.site.url

    @property
    def socket_host(self) -> str:
        """`host:port` of the WebSocket server."""
        return f"127.0.0.1:{self._sockets.socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._stack.enter_context(self.site)
        self._thread.start()
        self.site.pages["/"] = _SHELL.replace("SOCKET_URL", f"ws://{self.socket_host}/api/websocket")
        self.site.pages["/auth/token"] = self._answer({"access_token": "eyJhbGciOiJIUzI1NiJ9.e30.sB5fQ2rT7n0"})
        self.site.pages["/api/list"] = self._list
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sockets.shutdown()
        self._thread.join()
        self._stack.close()

    def _list(self, request: Request) -> Page:
        body = json.loads(request.body)
        if body.keys() != {"page", "sort"}:
            self._record({"POST": "/api/list", **body})
        return self._answer([f"Entry {number}" for number in range(body["page"] * 3, body["page"] * 3 + 3)])

    @staticmethod
    def _answer(content: object) -> Page:
        return Page(json.dumps(content), content_type="application/json")

    def _record(self, change: dict[str, Any]) -> None:
        with self._lock:
            self.changes.append(change)

    def _talk(self, connection: ServerConnection) -> None:
        answers = {
            "get_states": DEVICES,
            "panel/config": ["overview", "list", "history"],
            "history/during_period": ["Lamp was on", "Door was open"],
        }
        connection.send(json.dumps({"type": "auth_required"}))
        try:
            for text in connection:
                message = json.loads(text)
                with self._lock:
                    self.reads.append(message["type"])
                if message["type"] == "auth":
                    connection.send(json.dumps({"type": "auth_ok"}))
                    continue
                if message["type"] not in READS:
                    self._record(message)
                result = answers.get(message["type"], "done")
                connection.send(json.dumps({"id": message["id"], "type": "result", "result": result}))
        except ConnectionClosed:
            pass  # the page was left
