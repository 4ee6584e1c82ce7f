// What the DevTools protocol cannot stop, stopped inside: messages over WebSockets, and ways around the browser's requests.
// Runs before a document's own scripts, in every frame, and as early as possible in workers.
((mode, name) => {
  "use strict";
  const KEY = Symbol.for("waygraph.guard");
  if (globalThis[KEY]) return;
  Object.defineProperty(globalThis, KEY, { value: true });
  const MAX_TEXT = 262144; // longer messages match no rule
  const isPage = typeof document === "object";
  const stringify = JSON.stringify;
  const then = Promise.prototype.then;

  // In pages this answers whether the message may pass, in workers it only reports.
  const ask = (kind, url, text) => {
    try {
      return globalThis[name]?.(stringify({ kind, url, text, worker: !isPage }));
    } catch {
      return undefined; // nobody listens any more: the page is being closed
    }
  };

  if (typeof WebSocket === "function") {
    const nativeSend = WebSocket.prototype.send;
    const queues = new WeakMap(); // messages keep their order while they wait for their verdicts
    const readText = (data) => (typeof data === "string" && data.length <= MAX_TEXT ? data : null);
    WebSocket.prototype.send = function send(data) {
      if (this.readyState !== 1) return nativeSend.call(this, data); // throws, or drops it, as always
      const text = readText(data);
      if (mode === "observe") {
        ask("websocket", this.url, text);
        return nativeSend.call(this, data);
      }
      if (mode === "strict" || text === null || !isPage) {
        ask("websocket", this.url, text);
        return undefined;
      }
      const deliver = (allowed) => {
        if (allowed === true && this.readyState === 1) nativeSend.call(this, data);
      };
      const last = queues.get(this) ?? Promise.resolve();
      const asked = then.call(last, () => ask("websocket", this.url, text));
      queues.set(this, then.call(asked, deliver, () => {}));
      return undefined;
    };
  }
  if (mode === "observe") return;

  // Neither is seen by the page's DevTools session: a worker of several pages belongs to none of them, and the others
  // leave by sockets of their own. Pages have to do without where browsers lack them, too.
  for (const api of ["SharedWorker", "WebTransport", "WebSocketStream", "RTCPeerConnection", "webkitRTCPeerConnection"]) {
    delete globalThis[api];
  }

  // A frame that is removed takes its DevTools session along before a beacon of its last moment is judged.
  if (isPage && self !== top && typeof Navigator === "function") {
    Navigator.prototype.sendBeacon = function sendBeacon(url) {
      ask("ping", new URL(url, document.baseURI).href, null);
      return true;
    };
  }
})
