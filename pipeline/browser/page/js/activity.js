// Provides `activity`: requests, DOM mutations and navigations of the document, and the time of the last action.

const LONG_POLL_MS = 3000; // a request open for longer is a long poll
const DOWNLOAD_MS = 2000; // for a download to begin
const LOADING_MS = 1500; // a page that received a new resource within this time is still loading
const activity = {
  /** Time of the last DOM mutation, end of a request, or sign of work. */
  lastChange: now(),
  /** Time of the last call of `isQuiet`. */
  lastCheck: now(),
  /** Number of tabs or windows opened since the last snapshot. */
  opened: 0,
  /** Tabs that the page tried to open since the last snapshot; they were not opened. @type {Tab[]} */
  tabs: [],
  /** Method and URL of form posts into new tabs since the last snapshot; they were not sent. @type {[string, string][]} */
  stopped: [],
  /** "type: message" of dialogs since the last snapshot; they were not shown. @type {string[]} */
  dialogs: [],
  /** Links that were made to stay in this tab for a click, with their own target attribute. @type {[Element, string | null][]} */
  retargeted: [],
  /** Start time by request. @type {Map<unknown, number>} */
  inFlight: lasting(new Map()),
  /** Due time by timer id, `idle ${id}` or worker. @type {Map<unknown, number>} */
  timers: lasting(new Map()),
  /** Whether the document has set an interval that was not suppressed. */
  hasIntervals: false,
  /** Whether the callback of an interval runs now. */
  isInterval: false,
  /** Time at which a resource last arrived that this document had not loaded before. */
  arrived: 0,
  /** Time that the slowest script or style sheet of this document took, in milliseconds. */
  slowestCode: 0,
  /** Time at which a script, style sheet or module last arrived. */
  codeArrived: 0,
  /** Requests that have been open for too long to be waited for. @type {Set<unknown>} */
  polls: lasting(new Set()),
  /** Signs of waiting that stayed for the whole time for which the page was waited for, see waiting.js. @type {Set<string>} */
  lastingSigns: lasting(new Set()),
  /** Number of elements that wait to come into view (IntersectionObserver). */
  observed: 0,
  /** Value of `observed` when the page was last scrolled through. */
  observedAtSweep: 0,
  /** How often the page was scrolled through since the last action. */
  sweeps: 0,
  /** How often animations were finished. */
  finishes: 0,
  /** Length of the chain of timers, each set by the one before, up to the one that runs now. */
  nesting: 0,
  /** Whether the pointer has been pressed in this document. */
  isPressed: false,
  /** Whether the focus has moved since then to something that was not pressed: what is open may close when it leaves. */
  movedFocus: false,
  /** Start of the current action (or of the load). Timers that are due within the horizon after it count. */
  actionStart: 0,
  /** Time of the last consequence of the action or the load; decides which timers are suppressed. */
  lastConsequence: 0,
  /** Whether the document has settled since the action. */
  settled: false,
  navigating: false,
  /** The address that the document last began to navigate to. */
  destination: "",
  /** Whether the page shows that it waits, see waiting.js. */
  isWaiting: false,
};
let horizonMs = 1000;

/**
 * A property of this script in the top window; nothing in the top window itself, or if it has another origin.
 * @param {string} name
 */
const ofTop = (name) => {
  try {
    return window.top !== window ? /** @type {any} */ (window.top)[KEY]?.[name] : undefined;
  } catch {
    return undefined; // another origin
  }
};
/**
 * A property of this script in the parent window; nothing if there is none, or if it has another origin.
 * @param {string} name
 */
const ofParent = (name) => {
  try {
    return window.parent !== window ? /** @type {any} */ (window.parent)[KEY]?.[name] : undefined;
  } catch {
    return undefined; // another origin
  }
};
/** Record that an action on this document, and hence on the page, begins. */
const noteAction = () => {
  activity.actionStart = activity.lastConsequence = now();
  activity.settled = false;
  activity.sweeps = 0;
  ofTop("noteAction")?.();
};
/** Milliseconds since the last consequence of the action, in this document or in the top one. @returns {number} */
const msSinceConsequence = () => Math.min(now() - activity.lastConsequence, ofTop("ownMsSinceConsequence")?.() ?? Infinity);

// ---- what recurs ----

const RECURRING_MS = 1000; // what repeats itself for longer without a consequence goes on for ever
const MIN_REQUESTS = 4;
const MIN_MUTATIONS = 20;
const PAUSE_MS = 400; // a longer pause ends the repetition
const MAX_KNOWN = 500;
const DIRECT_MS = 150; // a request so soon after an action is what it asks for, whatever was requested before
/**
 * By address without query: since when and how often it was requested, and how many elements the page had then.
 * @type {Map<string, { first: number, count: number, elements: number }>}
 */
const requested = lasting(new Map());
/** Addresses, without queries, of requests that recur: heartbeats and polls. @type {Set<string>} */
const recurring = lasting(new Set());
/** @type {WeakMap<Node, { first: number, last: number, count: number, size: number, recurs: boolean }>} */
const mutated = lasting(new WeakMap());

/** @param {any} url */
const shapeOf = (url) => {
  try {
    return new URL(url instanceof Request ? url.url : url, document.baseURI).href.split(/[?#]/, 1)[0];
  } catch {
    return ""; // the browser throws the same
  }
};
/**
 * Note a request; returns whether it recurs, so that nothing waits for it. One that brings new elements is no repetition,
 * nor is one with another body: some interfaces have one address for everything.
 * @param {any} url
 * @param {any} [body]
 * @returns {boolean}
 */
const noteRequest = (url, body) => {
  const shape = shapeOf(url) + (typeof body === "string" ? `\n${body.replace(/\d+/g, "#")}` : "");
  const time = now();
  if (recurring.has(shape)) return activity.settled || time - activity.actionStart > DIRECT_MS;
  const elements = document.getElementsByTagName("*").length;
  const known = requested.get(shape);
  if (!known || known.elements !== elements || known.first < activity.actionStart) {
    if (requested.size < MAX_KNOWN) requested.set(shape, { first: time, count: 1, elements });
    return false;
  }
  known.count += 1;
  if (known.count < MIN_REQUESTS || time - known.first < RECURRING_MS) return false;
  recurring.add(shape);
  return true;
};
/** Whether a guarded page must not send a recurring request: nothing is waited for, and an action may not have caused it. */
const isWithheld = () => activity.settled && window[KEY].guarded;
/**
 * Whether a mutation is one of many at the same node that add nothing: a style that changes with every frame, a clock.
 * @param {MutationRecord} record
 */
const recurs = ({ type, target, addedNodes, removedNodes }) => {
  if (addedNodes.length > removedNodes.length) return false;
  const time = now();
  const size = type === "attributes" ? 0 : target.textContent?.length ?? 0;
  const known = mutated.get(target);
  if (!known || (!known.recurs && time - known.last > PAUSE_MS)) {
    mutated.set(target, { first: time, last: time, count: 1, size, recurs: false });
    return false;
  }
  known.last = time;
  known.count += 1;
  if (!known.recurs && known.count >= MIN_MUTATIONS && time - known.first >= RECURRING_MS) {
    if (size > known.size) [known.first, known.count, known.size] = [time, 1, size]; // a text that is being written
    else known.recurs = true;
  }
  return known.recurs;
};

/** @param {unknown} request */
const beginRequest = (request) => {
  activity.inFlight.set(request, now());
};
/** @param {unknown} request */
const endRequest = (request) => {
  activity.inFlight.delete(request);
  activity.polls.delete(request);
  activity.lastChange = now();
  if (!activity.settled) activity.lastConsequence = activity.lastChange;
};

// ---- DOM mutations ----

// Scripts, style sheets, images and frames that a script adds are requests as well: bundlers load their chunks this way.
const LOADING =
  "script[src], link[rel~=stylesheet][href], link[rel~=modulepreload][href], :is(img, iframe)[src]:not([loading=lazy], [src^='javascript:' i], [src^='about:' i]), frame[src]";
/** @param {any} element */
const mayLoad = (element) => {
  if (element.localName === "img") return !element.complete;
  if (element.localName === "script") return !element.noModule;
  return !element.matches("iframe, frame") || isEmptyFrame(element);
};
/** @param {any} element */
const awaitLoading = (element) => {
  if (!mayLoad(element)) return;
  beginRequest(element);
  for (const type of ["load", "error"]) element.addEventListener(type, () => endRequest(element), { once: true });
};
/** @param {MutationRecord[]} records */
const awaitLoadingIn = (records) => {
  for (const record of records) {
    if (record.attributeName === "src" && /** @type {any} */ (record.target).matches(LOADING)) awaitLoading(record.target);
    for (const node of /** @type {any} */ (record.addedNodes)) {
      if (node.nodeType !== 1) continue;
      if (node.matches(LOADING)) awaitLoading(node);
      if (node.firstElementChild) for (const element of node.querySelectorAll(LOADING)) awaitLoading(element);
    }
  }
};
/** Drops the cached markup that a record invalidates; set when there is any, see digest.js. @type {((record: MutationRecord) => void) | null} */
let forgetMarkup = null;
/** @param {MutationRecord[]} records */
const onMutations = (records) => {
  withNatives(() => {
    if (records.filter((record) => !recurs(record)).length) activity.lastChange = now();
    if (forgetMarkup) records.forEach(forgetMarkup);
    records.forEach(noteProgress);
    // Before that, the load event waits for all of these elements.
    if (document.readyState === "complete") awaitLoadingIn(records);
  });
};
const observer = new MutationObserver(onMutations);
const takeRecords = observer.takeRecords.bind(observer);
/** Process the mutations that the browser has not delivered yet. */
const flushMutations = () => {
  const records = takeRecords();
  if (records.length) onMutations(records);
};
/** @param {Node} root */
const observeMutations = (root) =>
  observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
observeMutations(document);

// ---- shadow roots ----

/** Known hosts of shadow roots. @type {Set<Element>} */
const shadowHosts = lasting(new Set());
/**
 * Closed shadow roots by host, in a guarded page. A page and its frames share one map.
 * @type {WeakMap<Element, ShadowRoot>}
 */
const closedRoots = ofParent("closedRoots") ?? lasting(new WeakMap());
/** Shadow roots whose mutations are observed. @type {WeakSet<ShadowRoot>} */
const observedRoots = lasting(new WeakSet());
/**
 * The shadow root of an element, open or closed, if this script has access to it.
 * @param {any} element
 * @returns {any}
 */
const shadowOf = (element) => {
  const root = unclobbered(element).shadowRoot ?? closedRoots.get(element) ?? null;
  if (root && !observedRoots.has(root)) {
    observedRoots.add(root); // the parser made it
    observeMutations(root);
    shadowHosts.add(element);
  }
  return root;
};
const attachShadow = Element.prototype.attachShadow;
Element.prototype.attachShadow = function (/** @type {ShadowRootInit} */ init) {
  const root = attachShadow.call(this, init);
  observedRoots.add(root);
  observeMutations(root);
  // In other pages than guarded ones closed roots stay closed, and their content is not observed.
  if (root.mode === "closed" && window[KEY].guarded) closedRoots.set(this, root);
  if (shadowOf(this)) shadowHosts.add(this);
  return root;
};

// ---- requests ----

if (window.fetch) {
  const nativeFetch = window.fetch;
  window.fetch = function (...args) {
    if (withNatives(() => noteRequest(args[0], args[1]?.body))) return isWithheld() ? new Promise(() => {}) : nativeFetch.apply(this, args);
    const request = {};
    beginRequest(request);
    const promise = nativeFetch.apply(this, args);
    promise.then(() => endRequest(request), () => endRequest(request));
    return promise;
  };
}
/** Addresses of requests. @type {WeakMap<XMLHttpRequest, any>} */
const addresses = lasting(new WeakMap());
const nativeXhrOpen = XMLHttpRequest.prototype.open;
XMLHttpRequest.prototype.open = function (/** @type {any} */ ...args) {
  addresses.set(this, args[1]);
  return apply(nativeXhrOpen, this, args);
};
const nativeSend = XMLHttpRequest.prototype.send;
XMLHttpRequest.prototype.send = function (/** @type {[any]} */ ...args) {
  if (withNatives(() => noteRequest(addresses.get(this), args[0]))) return isWithheld() ? undefined : nativeSend.apply(this, args);
  beginRequest(this);
  this.addEventListener("loadend", () => endRequest(this), { once: true });
  return nativeSend.apply(this, args);
};

// fetch() resolves when the headers of the response have arrived; the page shows what the body holds.
for (const read of /** @type {const} */ (["arrayBuffer", "blob", "bytes", "formData", "json", "text"])) {
  const nativeRead = /** @type {any} */ (window.Response)?.prototype[read];
  if (!nativeRead) continue;
  /** @type {any} */ (Response.prototype)[read] = /** @this {Response} @param {unknown[]} args */ function (...args) {
    if (recurring.has(shapeOf(this.url))) return apply(nativeRead, this, args);
    const reading = {};
    beginRequest(reading);
    const promise = apply(nativeRead, this, args);
    promise.then(() => endRequest(reading), () => endRequest(reading));
    return promise;
  };
}

const MAX_OBSERVED = 1_000;
/** Elements that the page waits for to come into view. @type {Set<Element>} */
const observedTargets = lasting(new Set());
const NativeIntersectionObserver = window.IntersectionObserver;
window.IntersectionObserver = class IntersectionObserver extends NativeIntersectionObserver {
  /** @param {Element} target */
  observe(target) {
    activity.observed += 1;
    if (observedTargets.size < MAX_OBSERVED) observedTargets.add(target);
    super.observe(target);
  }
};

/**
 * Note that a navigation to an address came to nothing; another one may have begun since.
 * @param {string} url
 */
const endNavigation = (url) => {
  const [ended, current] = [url, activity.destination].map((address) => address.replace(/#.*$/s, ""));
  if (ended === current) activity.navigating = false;
};
/** @type {any} */
const navigationApi = /** @type {any} */ (window).navigation;
if (navigationApi) {
  navigationApi.addEventListener("navigate", (/** @type {any} */ event) => {
    activity.navigating = !event.hashChange && !event.destination.sameDocument;
    activity.destination = event.destination.url;
    activity.lastChange = now();
    // The caller tells when a download has begun; one that it prevents may end without a word.
    const { destination } = activity;
    if (event.downloadRequest !== null) nativeSetTimeout(() => endNavigation(destination), DOWNLOAD_MS);
  });
  for (const done of ["navigatesuccess", "navigateerror"]) {
    navigationApi.addEventListener(done, () => {
      activity.navigating = false;
      activity.lastChange = now();
    });
  }
}

const passively = { capture: true, passive: true };
for (const type of ["mousedown", "mousemove", "keydown", "popstate", "hashchange"]) {
  window.addEventListener(type, (event) => event.isTrusted && noteAction(), passively);
}
// The events of a pointer that enters an element come before its `mousemove`, and set timers. The browser dispatches them as
// well when the element under a resting pointer changes.
for (const kind of ["pointer", "mouse"]) {
  let last = "";
  for (const type of ["over", "move"]) {
    window.addEventListener(kind + type, (/** @type {any} */ event) => {
      const at = `${event.clientX} ${event.clientY}`;
      if (event.isTrusted && type === "over" && at !== last) noteAction();
      last = at;
    }, passively);
  }
}
/** Elements that were under the pointer when it was pressed. A dialog that closes gives the focus back to one. @type {WeakSet<any>} */
const pressed = lasting(new WeakSet());
window.addEventListener("mousedown", (event) => {
  if (!event.isTrusted) return;
  for (const node of event.composedPath()) pressed.add(node);
  activity.isPressed = true;
  activity.movedFocus = false;
}, passively);
window.addEventListener("focusin", (event) => {
  activity.movedFocus = activity.isPressed && !pressed.has(event.composedPath()[0]);
}, passively);
window.addEventListener("focusout", () => (activity.movedFocus = false), passively);
document.addEventListener("DOMContentLoaded", noteAction);
window.addEventListener("load", () => {
  activity.lastConsequence = now();
});

const CODE = lasting(new Set(["script", "link", "css", "other"])); // import() has the initiator type "other"
const MAX_ARRIVALS = 2_000; // a document that loads more resources never stops loading
/** URLs of the resources that this document has loaded, without their queries. @type {Set<string>} */
const arrivals = lasting(new Set());
const isReceiving = () => now() - activity.arrived < LOADING_MS;
const resources = new PerformanceObserver((list) => {
  withNatives(() => {
    for (const { name, initiatorType, duration } of /** @type {PerformanceResourceTiming[]} */ (list.getEntries())) {
      const url = name.split("?", 1)[0];
      if (recurring.has(url) || (initiatorType === "img" && document.readyState === "complete" && noteRequest(name))) continue;
      activity.lastChange = now();
      if (arrivals.size < MAX_ARRIVALS && !arrivals.has(url)) {
        arrivals.add(url);
        activity.arrived = activity.lastChange;
      }
      if (!CODE.has(initiatorType)) continue;
      activity.codeArrived = activity.lastChange;
      if (duration > activity.slowestCode) activity.slowestCode = duration;
    }
  });
});
resources.observe({ type: "resource", buffered: true });
