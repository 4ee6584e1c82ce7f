// What is the page busy with? Requests, mutations, navigations, and when it was last acted on.

const LONG_POLL_MS = 3000; // a request open for longer is a long poll
const ARRIVING_MS = 1500; // a page to which something new came within this time is still being loaded
const activity = {
  lastChange: now(), // last DOM mutation, end of a request, or sign of work
  lastLook: now(), // when quiet was last asked for
  opened: 0, // tabs or windows that were opened since the last snapshot
  tabs: [], // URLs of those that were asked for, and not opened, since then
  stopped: [], // [method, URL] of form posts into new tabs that were not sent, since then
  dialogs: [], // "type: message" of dialogs that were not shown, since then
  retargeted: [], // [link, its own target attribute] of links that were made to stay in this tab for a click
  inFlight: lasting(new Map()), // request -> start time
  timers: lasting(new Map()), // timer id, `idle ${id}` or worker -> due time
  arrived: 0, // when something last arrived that this document had not loaded before
  slowestCode: 0, // so long did the slowest script or style sheet of this document take
  observed: 0, // elements that wait to come into view (IntersectionObserver)
  swept: 0, // how many of them there were when the page was last scrolled through
  sweeps: 0, // how often that was since the last action
  finishes: 0, // how often animations were put to their end
  nesting: 0, // how many timers set one another until the one that runs now
  since: 0, // when the current action (or the load) began; timers due within the horizon after it count
  owed: 0, // when the page last did something that the action or the load led to: timers are set aside by this
  settled: false, // whether it settled since then
  navigating: false,
};
let horizonMs = 1000;

const ofTop = (name) => {
  try {
    return window.top !== window ? window.top[KEY]?.[name] : undefined;
  } catch {
    return undefined; // the frame's page is of another origin
  }
};
// The page, or a frame of it, was acted on.
const acted = () => {
  activity.since = activity.owed = now();
  activity.settled = false;
  activity.sweeps = 0;
  ofTop("acted")?.();
};
const owedMs = () => Math.min(now() - activity.owed, ofTop("owedMs")?.() ?? Infinity);

const begin = (request) => {
  activity.inFlight.set(request, now());
};
const end = (request) => {
  activity.inFlight.delete(request);
  activity.lastChange = now();
  if (!activity.settled) activity.owed = activity.lastChange;
};

// Scripts, styles and images that a script adds are requests as well: bundlers load their chunks so.
const LOADING = "script[src], link[rel~=stylesheet][href], link[rel~=modulepreload][href], img[src]:not([loading=lazy])";
const awaitLoading = (element) => {
  if (element.localName === "img" ? element.complete : element.localName === "script" && element.noModule) return;
  begin(element);
  for (const type of ["load", "error"]) element.addEventListener(type, () => end(element), { once: true });
};
let forgetMarkup = null; // that of what a record is about, once any is kept; see digest.js
const onChanges = (records) => {
  activity.lastChange = now();
  withNatives(() => {
    if (forgetMarkup) records.forEach(forgetMarkup);
    // The load event waits for all of these.
    if (document.readyState === "complete") awaitLoadingIn(records);
  });
};
const observer = new MutationObserver(onChanges);
// Those that the browser is about to tell of.
const takeRecords = observer.takeRecords.bind(observer);
const tellChanges = () => {
  const records = takeRecords();
  if (records.length) onChanges(records);
};
const awaitLoadingIn = (records) => {
  for (const record of records) {
    for (const node of record.addedNodes) {
      if (node.nodeType !== 1) continue;
      if (node.matches(LOADING)) awaitLoading(node);
      if (node.firstElementChild) for (const element of node.querySelectorAll(LOADING)) awaitLoading(element);
    }
  }
};
const watch = (root) =>
  observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
watch(document);

const shadowHosts = lasting(new Set()); // those that are known
const ofParent = (name) => {
  try {
    return window.parent !== window ? window.parent[KEY]?.[name] : undefined;
  } catch {
    return undefined; // of another origin
  }
};
// host -> shadow root that only its maker knows, in a page of our own; one map for a page and its frames, whoever looks.
const closedRoots = ofParent("closedRoots") ?? lasting(new WeakMap());
const watched = lasting(new WeakSet()); // shadow roots
const shadowOf = (element) => {
  const root = element.shadowRoot ?? closedRoots.get(element) ?? null;
  if (root && !watched.has(root)) {
    watched.add(root); // it was written into the page
    watch(root);
    shadowHosts.add(element);
  }
  return root;
};
const attachShadow = Element.prototype.attachShadow;
Element.prototype.attachShadow = function (init) {
  const root = attachShadow.call(this, init);
  if (root.mode === "closed" && window[KEY].guarded) closedRoots.set(this, root);
  watched.add(root);
  watch(root);
  shadowHosts.add(this);
  return root;
};

if (window.fetch) {
  const nativeFetch = window.fetch;
  window.fetch = function (...args) {
    const request = {};
    begin(request);
    const promise = nativeFetch.apply(this, args);
    promise.then(() => end(request), () => end(request));
    return promise;
  };
}
const nativeSend = XMLHttpRequest.prototype.send;
XMLHttpRequest.prototype.send = function (...args) {
  begin(this);
  this.addEventListener("loadend", () => end(this), { once: true });
  return nativeSend.apply(this, args);
};

// A request has an answer when its headers are there; what a page shows of it comes with the body.
for (const read of ["arrayBuffer", "blob", "bytes", "formData", "json", "text"]) {
  const nativeRead = window.Response?.prototype[read];
  if (!nativeRead) continue;
  Response.prototype[read] = function (...args) {
    const reading = {};
    begin(reading);
    const promise = apply(nativeRead, this, args);
    promise.then(() => end(reading), () => end(reading));
    return promise;
  };
}

const NativeIntersectionObserver = window.IntersectionObserver;
window.IntersectionObserver = class IntersectionObserver extends NativeIntersectionObserver {
  observe(target) {
    activity.observed += 1;
    super.observe(target);
  }
};

if (window.navigation) {
  navigation.addEventListener("navigate", (event) => {
    activity.navigating = !event.hashChange && event.downloadRequest === null && !event.destination.sameDocument;
    activity.lastChange = now();
  });
  for (const done of ["navigatesuccess", "navigateerror"]) {
    navigation.addEventListener(done, () => {
      activity.navigating = false;
      activity.lastChange = now();
    });
  }
}

for (const type of ["mousedown", "mousemove", "keydown", "popstate", "hashchange"]) {
  window.addEventListener(type, (event) => event.isTrusted && acted(), { capture: true, passive: true });
}
document.addEventListener("DOMContentLoaded", acted);
window.addEventListener("load", () => {
  activity.owed = now();
});

const CODE = lasting(new Set(["script", "link", "css", "other"])); // what import() asks for counts as "other"
const MAX_ARRIVALS = 2_000; // a document that loads more than that is at it for ever
const arrivals = lasting(new Set()); // URLs of what this document loaded, without their queries
const isArriving = () => now() - activity.arrived < ARRIVING_MS;
const resources = new PerformanceObserver((list) => {
  activity.lastChange = now();
  withNatives(() => {
    for (const { name, initiatorType, duration } of list.getEntries()) {
      const url = name.split("?", 1)[0];
      if (arrivals.size < MAX_ARRIVALS && !arrivals.has(url)) {
        arrivals.add(url);
        activity.arrived = activity.lastChange;
      }
      if (CODE.has(initiatorType) && duration > activity.slowestCode) activity.slowestCode = duration;
    }
  });
});
resources.observe({ type: "resource", buffered: true });
