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
   * @param {"websocket" | "ping" | "speculation" | "scroll" | "stand_in"} kind
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
  /**
   * Report, once in this document, that a script uses a stand-in.
   * @param {string} api
   */
  const noteStandIn = (api) => {
    if (!standIns[api]) report("stand_in", location.href, api);
    standIns[api] = true;
  };
  /** @type {Record<string, boolean>} */
  const standIns = {};

  // Service workers are off: their requests belong to no page. Applications start when theirs is registered, so that it
  // seems to be, and neither answers requests nor messages. No event says that it controls the page: some load it anew then.
  if (isPage && navigator.serviceWorker) {
    const container = navigator.serviceWorker;
    /** @type {any} */
    let registration = null;
    /** @type {(value: any) => void} */
    let resolveReady;
    const ready = new Promise((resolve) => (resolveReady = resolve));
    /** @param {string | URL} script @param {{ scope?: string }} [options] */
    const register = async (script, options) => {
      noteStandIn("service_worker");
      const scriptURL = new URL(script, document.baseURI).href;
      const active = Object.assign(new EventTarget(), { scriptURL, state: "activated", onstatechange: null, postMessage() {} });
      registration ??= Object.assign(new EventTarget(), {
        active, installing: null, waiting: null, onupdatefound: null, updateViaCache: "imports",
        scope: new URL(options?.scope ?? ".", options?.scope ? document.baseURI : scriptURL).href,
        update: async () => registration,
        unregister: async () => true,
        getNotifications: async () => [],
        showNotification: async () => {},
        navigationPreload: { enable: async () => {}, disable: async () => {}, getState: async () => ({ enabled: false }) },
        pushManager: { getSubscription: async () => null, permissionState: async () => "denied" },
        sync: { register: async () => {}, getTags: async () => [] },
      });
      resolveReady(registration);
      return registration;
    };
    const inert = {
      register: { value: register },
      ready: { get: () => ready },
      controller: { get: () => registration?.active ?? null },
      getRegistration: { value: async () => registration ?? undefined },
      getRegistrations: { value: async () => (registration ? [registration] : []) },
      startMessages: { value() {} },
    };
    for (const [property, descriptor] of Object.entries(inert)) {
      Object.defineProperty(container, property, { configurable: true, ...descriptor });
    }
  }
  if (mode === "observe") return;

  // The page's DevTools session sees none of these: a shared worker belongs to several pages and hence to no session, and
  // the other APIs use sockets of their own. Browsers exist that lack them, hence pages must work without them.
  // `fetchLater` sends when its document is left, which is when the visit of the next document begins.
  const { RTCPeerConnection } = globalThis;
  for (const api of [
    "SharedWorker", "WebTransport", "WebSocketStream", "RTCPeerConnection", "webkitRTCPeerConnection", "fetchLater",
  ]) {
    delete globalThis[api];
  }
  // Of two of them applications make one when they start, and go on before it answers. Theirs never answers.
  if (isPage) { // also where the browser was started without shared workers
    const { port1 } = new MessageChannel(); // its other port listens to nothing
    globalThis.SharedWorker = class SharedWorker extends EventTarget {
      onerror = null;
      port = port1;
      /** @param {string | URL} script */
      constructor(script) {
        super();
        noteStandIn("shared_worker");
        new URL(script, globalThis.location.href); // throws the error of an address that is none
      }
    };
  }
  if (RTCPeerConnection) {
    const description = async () => ({ type: "offer", sdp: "", toJSON: () => ({ type: "offer", sdp: "" }) });
    globalThis.RTCPeerConnection = class RTCPeerConnection extends EventTarget {
      connectionState = "new";
      iceConnectionState = "new";
      iceGatheringState = "new";
      signalingState = "stable";
      localDescription = null;
      remoteDescription = null;
      constructor() {
        super();
        noteStandIn("peer_connection");
      }
      createOffer = description;
      createAnswer = description;
      setLocalDescription = async () => {};
      setRemoteDescription = async () => {};
      addIceCandidate = async () => {};
      getStats = async () => new Map();
      /** @param {string} label */
      createDataChannel = (label) =>
        Object.assign(new EventTarget(), { label, readyState: "connecting", bufferedAmount: 0, send() {}, close() {} });
      addTrack = () => ({ track: null, getParameters: () => ({}), setParameters: async () => {}, replaceTrack: async () => {} });
      addTransceiver = () => ({ mid: null, direction: "inactive", sender: this.addTrack(), receiver: {}, stop() {} });
      removeTrack() {}
      getSenders = () => [];
      getReceivers = () => [];
      getTransceivers = () => [];
      getConfiguration = () => ({});
      setConfiguration() {}
      restartIce() {}
      close() {
        this.signalingState = this.connectionState = this.iceConnectionState = "closed";
      }
      static generateCertificate = async () => ({ expires: Infinity, getFingerprints: () => [] });
    };
    globalThis.webkitRTCPeerConnection = globalThis.RTCPeerConnection;
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
