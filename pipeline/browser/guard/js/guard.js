// Provides the in-page part of the network guard: it stops WebSocket messages and speculation rules, which the DevTools
// protocol cannot stop, and removes APIs that bypass the browser's requests. It runs before a document's own scripts, in
// every frame, and as early as possible in workers.

/**
 * @param {"strict" | "guard" | "observe"} mode
 * @param {string} name The function that reports to the guard: it returns a promise in pages, nothing in workers.
 */
((mode, name) => {
  "use strict";
  const KEY = Symbol.for("waygraph.guard");
  if (globalThis[KEY]) return;
  const MAX_TEXT = 262144; // longer messages match no rule, and none that passed before
  const isPage = typeof document === "object";
  const stringify = JSON.stringify;
  const then = Promise.prototype.then;

  /**
   * Report a message. In pages the result says whether the message may pass; workers get none.
   * @param {"websocket" | "ping" | "speculation" | "scroll"} kind
   * @param {string} url
   * @param {string | null} text
   * @param {string | null} [bytes] A binary message, one character for each byte.
   * @returns {Promise<boolean> | undefined}
   */
  const report = (kind, url, text, bytes = null) => {
    try {
      return globalThis[name]?.(stringify({ kind, url, text, bytes, worker: !isPage }));
    } catch {
      return undefined; // the page is being closed and the binding is gone
    }
  };
  /** Report that the page is about to be scrolled by us; resolves when the guard knows. */
  const noteScroll = () => report("scroll", location.href, null);
  Object.defineProperty(globalThis, KEY, { value: Object.freeze({ noteScroll }) });

  if (typeof WebSocket === "function") {
    const nativeSend = WebSocket.prototype.send;
    /** Messages keep their order while their checks are pending. @type {WeakMap<WebSocket, Promise<void>>} */
    const queues = new WeakMap();
    /** @param {unknown} data */
    const readText = (data) => (typeof data === "string" && data.length <= MAX_TEXT ? data : null);
    /** Return a copy of a binary message: the page may reuse its memory. @param {unknown} data */
    const readBytes = (data) => {
      if (!(data instanceof ArrayBuffer || ArrayBuffer.isView(data)) || data.byteLength > MAX_TEXT) return null;
      return ArrayBuffer.isView(data)
        ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice()
        : new Uint8Array(data.slice(0));
    };
    /** @param {Uint8Array} bytes */
    const toCharacters = (bytes) => {
      let characters = "";
      for (const byte of bytes) characters += String.fromCharCode(byte);
      return characters;
    };
    WebSocket.prototype.send = function send(data) {
      if (this.readyState !== 1) return nativeSend.call(this, data); // throws or drops the message, as without the guard
      const text = readText(data);
      if (mode === "observe") {
        report("websocket", this.url, text);
        return nativeSend.call(this, data);
      }
      const bytes = text === null ? readBytes(data) : null;
      if (mode === "strict" || (text === null && bytes === null) || !isPage) {
        report("websocket", this.url, text);
        return undefined;
      }
      const content = bytes ?? data;
      const characters = bytes && toCharacters(bytes);
      /** @param {unknown} allowed */
      const deliver = (allowed) => {
        if (allowed === true && this.readyState === 1) nativeSend.call(this, content);
      };
      const last = queues.get(this) ?? Promise.resolve();
      const checked = then.call(last, () => report("websocket", this.url, text, characters));
      queues.set(this, then.call(checked, deliver, () => {}));
      return undefined;
    };
  }

  // Speculation rules make the browser load pages that nobody asked for, and no DevTools session intercepts these requests.
  // The browser reads a set of rules in a microtask after its script was inserted or, by the parser, completed; the record
  // of the insertion is delivered before that. Only the top document of a page can have rules.
  if (isPage && self === top) {
    const { querySelectorAll, getAttribute, setAttribute, remove, attachShadow } = Element.prototype;
    const { insertBefore } = Node.prototype;
    const { observe } = MutationObserver.prototype;
    /** @param {Element} element */
    const disarm = (element) => {
      if (element.localName !== "script" || getAttribute.call(element, "type")?.toLowerCase() !== "speculationrules") return;
      const { parentNode, nextSibling } = element;
      if (!parentNode) return;
      setAttribute.call(element, "type", "inert/speculationrules"); // the parser asks for the type when it reads the end tag
      remove.call(element); // rules that have been read are dropped with their script, and not read again
      insertBefore.call(parentNode, element, nextSibling);
      report("speculation", location.href, null);
    };
    /** @param {Document | ShadowRoot} root */
    const watch = (root) => observe.call(observer, root, { childList: true, subtree: true });
    const observer = new MutationObserver((records) => {
      for (const { addedNodes } of records) {
        for (const node of addedNodes) {
          if (!(node instanceof Element)) continue;
          disarm(node);
          if (node.firstChild) for (const script of querySelectorAll.call(node, "script")) disarm(script);
        }
      }
    });
    watch(document);
    Element.prototype.attachShadow = function (options) {
      const root = attachShadow.call(this, options);
      watch(root);
      return root;
    };
  }
  if (mode === "observe") return;

  // The page's DevTools session sees none of these: a shared worker belongs to several pages and hence to no session, and
  // the other APIs use sockets of their own. Browsers exist that lack them, hence pages must work without them.
  // `fetchLater` sends when its document is left, which is when the visit of the next document begins.
  for (const api of [
    "SharedWorker", "WebTransport", "WebSocketStream", "RTCPeerConnection", "webkitRTCPeerConnection", "fetchLater",
  ]) {
    delete globalThis[api];
  }

  // A visit of the next document begins before this one is gone, and what a document sends then may pass. Requests that
  // this one sends while it is left are no part of that visit, and no rule lets them pass either.
  if (isPage && mode === "guard") {
    // The first document of a frame takes over the window, and with it this script, of the empty one that it replaces.
    /** @type {Document | null} */
    let left = null;
    for (const event of ["pagehide", "unload"]) addEventListener(event, () => (left = document), true);
    addEventListener("pageshow", () => (left = null), true);
    const nativeFetch = globalThis.fetch;
    /** @param {RequestInfo | URL} input @param {RequestInit} [init] */
    globalThis.fetch = function fetch(input, init) {
      if (left !== document) return nativeFetch.call(this, input, init);
      const url = input instanceof Request ? input.url : new URL(input, document.baseURI).href;
      report("ping", url, null);
      return new Promise(() => {});
    };
    const nativeXhrSend = XMLHttpRequest.prototype.send;
    XMLHttpRequest.prototype.send = function send(body) {
      if (left === document) report("ping", location.href, null);
      else nativeXhrSend.call(this, body);
    };
  }

  // Removing a frame closes its DevTools session before the beacon that its unload handler sends is checked.
  if (isPage && self !== top && typeof Navigator === "function") {
    Navigator.prototype.sendBeacon = function sendBeacon(url) {
      report("ping", new URL(url, document.baseURI).href, null);
      return true;
    };
  }
})
