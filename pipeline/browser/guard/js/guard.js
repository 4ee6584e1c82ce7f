// Provides the in-page part of the network guard: it stops WebSocket messages, which the DevTools protocol cannot stop,
// and removes APIs that bypass the browser's requests. It runs before a document's own scripts, in every frame, and as
// early as possible in workers.

/**
 * @param {"strict" | "guard" | "observe"} mode
 * @param {string} name The function that reports to the guard: it returns a promise in pages, nothing in workers.
 */
((mode, name) => {
  "use strict";
  const KEY = Symbol.for("waygraph.guard");
  if (globalThis[KEY]) return;
  Object.defineProperty(globalThis, KEY, { value: true });
  const MAX_TEXT = 262144; // longer messages match no rule
  const isPage = typeof document === "object";
  const stringify = JSON.stringify;
  const then = Promise.prototype.then;

  /**
   * Report a message. In pages the result says whether the message may pass; workers get none.
   * @param {"websocket" | "ping"} kind
   * @param {string} url
   * @param {string | null} text
   * @returns {Promise<boolean> | undefined}
   */
  const report = (kind, url, text) => {
    try {
      return globalThis[name]?.(stringify({ kind, url, text, worker: !isPage }));
    } catch {
      return undefined; // the page is being closed and the binding is gone
    }
  };

  if (typeof WebSocket === "function") {
    const nativeSend = WebSocket.prototype.send;
    /** Messages keep their order while their checks are pending. @type {WeakMap<WebSocket, Promise<void>>} */
    const queues = new WeakMap();
    /** @param {unknown} data */
    const readText = (data) => (typeof data === "string" && data.length <= MAX_TEXT ? data : null);
    WebSocket.prototype.send = function send(data) {
      if (this.readyState !== 1) return nativeSend.call(this, data); // throws or drops the message, as without the guard
      const text = readText(data);
      if (mode === "observe") {
        report("websocket", this.url, text);
        return nativeSend.call(this, data);
      }
      if (mode === "strict" || text === null || !isPage) {
        report("websocket", this.url, text);
        return undefined;
      }
      /** @param {unknown} allowed */
      const deliver = (allowed) => {
        if (allowed === true && this.readyState === 1) nativeSend.call(this, data);
      };
      const last = queues.get(this) ?? Promise.resolve();
      const checked = then.call(last, () => report("websocket", this.url, text));
      queues.set(this, then.call(checked, deliver, () => {}));
      return undefined;
    };
  }
  if (mode === "observe") return;

  // The page's DevTools session sees none of these: a shared worker belongs to several pages and hence to no session, and
  // the other APIs use sockets of their own. Browsers exist that lack them, hence pages must work without them.
  for (const api of ["SharedWorker", "WebTransport", "WebSocketStream", "RTCPeerConnection", "webkitRTCPeerConnection"]) {
    delete globalThis[api];
  }

  // Removing a frame closes its DevTools session before the beacon that its unload handler sends is checked.
  if (isPage && self !== top && typeof Navigator === "function") {
    Navigator.prototype.sendBeacon = function sendBeacon(url) {
      report("ping", new URL(url, document.baseURI).href, null);
      return true;
    };
  }
})
