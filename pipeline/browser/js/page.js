// What waygraph runs inside a page: watch for quiet, describe the page, find a recorded element again.
// Installed in every document before its own scripts (or late, in a page that is not ours); installing twice is a no-op.
(() => {
  "use strict";
  const KEY = Symbol.for("waygraph");
  if (window[KEY]) return;

  // Copies from before the page's own scripts could replace them.
  const nativeSetTimeout = window.setTimeout.bind(window);
  const nativeClearTimeout = window.clearTimeout.bind(window);
  const nativeStringify = JSON.stringify;
  // Some libraries give arrays or strings a toJSON of their own, which even the native function obeys.
  const stringify = (value) => {
    const own = [Object.prototype, Array.prototype, String.prototype]
      .map((prototype) => [prototype, Object.getOwnPropertyDescriptor(prototype, "toJSON")])
      .filter(([, descriptor]) => descriptor?.configurable);
    for (const [prototype] of own) delete prototype.toJSON;
    try {
      return nativeStringify(value);
    } finally {
      for (const [prototype, descriptor] of own) Object.defineProperty(prototype, "toJSON", descriptor);
    }
  };
  const now = () => performance.now();

  // ---- Quiet: has everything that an action or a load started come to an end? -------------------------------------

  const MAX_TIMER_NESTING = 3; // a timer set by a timer set by a timer: a poller, not a consequence of the action
  const LONG_POLL_MS = 3000; // a request open for longer is a long poll
  const MAX_FINISHES = 50; // a page that starts its animations again and again never comes to rest
  const BUSY_MS = 40; // a main thread that was away for longer was at work on something
  const MODULE_QUIET_MS = 200; // import() cannot be watched: where there are modules, wait for what they may import
  const activity = {
    lastChange: now(), // last DOM mutation, end of a request, or sign of work
    lastLook: now(), // when quiet was last asked for
    opened: 0, // tabs or windows that were opened since the last snapshot
    tabs: [], // URLs of those that were asked for, and not opened, since then
    stopped: [], // [method, URL] of form posts into new tabs that were not sent, since then
    retargeted: [], // [link, its own target attribute] of links that were made to stay in this tab for a click
    inFlight: new Map(), // request -> start time
    timers: new Map(), // timer id -> due time
    observed: 0, // elements that wait to come into view (IntersectionObserver)
    swept: 0, // how many of them there were when the page was last scrolled through
    finishes: 0, // how often animations were put to their end
    nesting: 0,
    since: 0, // when the current action (or the load) began; timers due within the horizon after it count
    navigating: false,
  };
  let horizonMs = 1000;

  const begin = (request) => {
    activity.inFlight.set(request, now());
  };
  const end = (request) => {
    activity.inFlight.delete(request);
    activity.lastChange = now();
  };

  // Scripts, styles and images that a script adds are requests as well: bundlers load their chunks so.
  const LOADING = "script[src], link[rel~=stylesheet][href], link[rel~=modulepreload][href], img[src]:not([loading=lazy])";
  const awaitLoading = (element) => {
    if (element.localName === "img" ? element.complete : element.localName === "script" && element.noModule) return;
    begin(element);
    for (const type of ["load", "error"]) element.addEventListener(type, () => end(element), { once: true });
  };
  const observer = new MutationObserver((records) => {
    activity.lastChange = now();
    if (document.readyState !== "complete") return; // the load event waits for all of these
    for (const record of records) {
      for (const node of record.addedNodes) {
        if (node.nodeType !== 1) continue;
        if (node.matches(LOADING)) awaitLoading(node);
        if (node.firstElementChild) node.querySelectorAll(LOADING).forEach(awaitLoading);
      }
    }
  });
  const watch = (root) =>
    observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
  watch(document);

  const attachShadow = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (init) {
    const root = attachShadow.call(this, init);
    watch(root);
    return root;
  };

  window.setTimeout = function (callback, delay, ...args) {
    const nesting = activity.nesting + 1;
    let id;
    const run = function (...values) {
      activity.timers.delete(id);
      const outer = activity.nesting;
      activity.nesting = nesting;
      try {
        return typeof callback === "function" ? callback.apply(this, values) : (0, eval)(String(callback));
      } finally {
        activity.nesting = outer;
      }
    };
    id = nativeSetTimeout(run, delay, ...args);
    const due = now() + (Number(delay) || 0);
    if (nesting <= MAX_TIMER_NESTING && due <= activity.since + horizonMs) activity.timers.set(id, due);
    return id;
  };
  window.clearTimeout = (id) => {
    activity.timers.delete(id);
    return nativeClearTimeout(id);
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

  for (const type of ["mousedown", "mousemove", "keydown"]) {
    window.addEventListener(
      type,
      (event) => {
        if (event.isTrusted) activity.since = now();
      },
      { capture: true, passive: true },
    );
  }
  document.addEventListener("DOMContentLoaded", () => {
    activity.since = now();
  });

  // In a page of our own, new tabs are not opened but reported: the driver opens them, guarded from their first request.
  // In a page that is not ours they are counted, so that the driver knows that one will come and how long to wait.
  const hasFrame = (name, win = window.top) => {
    for (let i = 0; i < win.length; i++) {
      let own = "";
      try {
        own = win[i].name;
      } catch {
        continue; // another origin: its name cannot be read, nor can links of ours be meant for it
      }
      if (own === name || hasFrame(name, win[i])) return true;
    }
    return false;
  };
  const isNewTab = (target) => Boolean(target) && !/^_(self|top|parent)$/i.test(target) && !hasFrame(target);
  const nativeOpen = window.open;
  window.open = function (url, target, features) {
    const address = url && URL.canParse(url, document.baseURI) ? new URL(url, document.baseURI).href : "about:blank";
    if (target && !isNewTab(target)) return nativeOpen.call(window, url, target, features);
    if (!window[KEY].guarded) {
      activity.opened += 1;
      return nativeOpen.call(window, url, target, features);
    }
    if (/^https?:/.test(address)) activity.tabs.push(address);
    return null;
  };
  const targetOf = (element) =>
    element.getAttribute("target") ?? document.querySelector("base[target]")?.getAttribute("target") ?? "";
  window.addEventListener("click", (event) => {
    const link = event.composedPath().find((node) => node instanceof Element && node.matches("a[href], area[href]"));
    if (link && !event.defaultPrevented && isNewTab(targetOf(link))) activity.opened += 1;
  });
  // A form that would post into a new tab is stopped here: no guard is in place yet when such a tab sends it.
  const formGetter = (name) => Object.getOwnPropertyDescriptor(HTMLFormElement.prototype, name).get;
  const [formMethod, formAction, formTarget] = ["method", "action", "target"].map(formGetter);
  const leavesTab = (form, submitter) => {
    const target = submitter?.getAttribute("formtarget") || formTarget.call(form) || targetOf(document.documentElement);
    if (!window[KEY].guarded || !isNewTab(target)) return false;
    const method = submitter?.getAttribute("formmethod") || formMethod.call(form);
    activity.stopped.push([method.toUpperCase(), submitter?.getAttribute("formaction") || formAction.call(form)]);
    return true;
  };
  window.addEventListener("submit", (event) => {
    if (leavesTab(event.target, event.submitter)) event.preventDefault();
  });
  const nativeSubmit = HTMLFormElement.prototype.submit;
  HTMLFormElement.prototype.submit = function () {
    if (!leavesTab(this, null)) nativeSubmit.call(this);
  };

  const innerWaygraphs = function* (win) {
    for (const frame of win.document.querySelectorAll("iframe, frame")) {
      let inner = null;
      try {
        inner = frame.contentDocument && frame.contentWindow;
      } catch {
        inner = null; // another origin
      }
      if (inner) {
        if (inner[KEY]) yield inner[KEY];
        yield* innerWaygraphs(inner);
      }
    }
  };

  // Put finite animations to their end; says whether that calls for another look.
  const finishAnimations = () => {
    let finished = false;
    for (const animation of document.getAnimations()) {
      const timing = animation.effect?.getComputedTiming();
      if (animation.playState === "running" && timing && Number.isFinite(timing.endTime)) {
        try {
          animation.finish();
          finished = true;
        } catch {
          // one with a playback rate of zero cannot be finished, and does not move either
        }
      }
    }
    if (finished) activity.finishes += 1;
    return finished && activity.finishes < MAX_FINISHES;
  };

  const resources = new PerformanceObserver(() => {
    activity.lastChange = now();
  });
  resources.observe({ type: "resource" });

  const hasModules = () => document.querySelector("script[type=module], link[rel~=modulepreload]") !== null;
  const isQuiet = (quietMs, since) => {
    const time = now();
    if (time - Math.max(activity.lastLook, since) > BUSY_MS) activity.lastChange = time;
    activity.lastLook = time;
    for (const [request, start] of activity.inFlight) {
      if (time - start > LONG_POLL_MS) activity.inFlight.delete(request);
    }
    for (const [id, due] of activity.timers) {
      if (time > due + 250) activity.timers.delete(id); // the browser dropped it
    }
    const idle = time - Math.max(activity.lastChange, activity.since);
    const quiet =
      document.readyState === "complete" &&
      !activity.navigating &&
      activity.inFlight.size === 0 &&
      activity.timers.size === 0 &&
      idle >= quietMs &&
      (idle >= MODULE_QUIET_MS || !hasModules());
    // Asked last, since it makes the browser bring all styles up to date.
    if (!quiet || !finishAnimations()) return quiet;
    activity.lastChange = now();
    return false;
  };
  const allQuiet = (quietMs, since) =>
    isQuiet(quietMs, since) && [...innerWaygraphs(window)].every((inner) => inner.isQuiet(quietMs, Infinity));

  const normalise = () => {
    if (document.activeElement && document.activeElement !== document.body) document.activeElement.blur?.();
    if (window.scrollX || window.scrollY) window.scrollTo({ left: 0, top: 0, behavior: "instant" });
  };

  // Content that a page builds when it comes into view is there or not depending on how its first layout happened to
  // run. Scrolling through once makes it be there always. Bounded, so that endless lists grow by a step at most.
  const MAX_SCREENS = 20;
  const frame = () => Promise.race([new Promise(requestAnimationFrame), new Promise((r) => nativeSetTimeout(r, 40))]);
  const scroller = () => {
    const page = document.scrollingElement;
    if (!page || page.scrollHeight > window.innerHeight) return page;
    let element = document.elementFromPoint(window.innerWidth / 2, window.innerHeight / 2);
    while (element && (element.scrollHeight <= element.clientHeight || getComputedStyle(element).overflowY === "visible")) {
      element = element.parentElement;
    }
    return element || page;
  };
  const sweep = async () => {
    activity.swept = activity.observed;
    const box = scroller();
    const end = Math.min(box ? box.scrollHeight : 0, window.innerHeight * MAX_SCREENS);
    for (let y = window.innerHeight; y < end; y += window.innerHeight) {
      box.scrollTo({ top: y, behavior: "instant" });
      await frame();
      await frame();
    }
    box?.scrollTo({ top: 0, left: 0, behavior: "instant" });
    await frame();
  };

  const settle = async (options) => {
    horizonMs = options.timerHorizonMs;
    const start = now();
    if (!options.hovering) normalise();
    let capped = false;
    while (!(capped || allQuiet(options.quietMs, start))) {
      await new Promise((resolve) => nativeSetTimeout(resolve, 8));
      capped = now() - start > options.capMs;
      if (!capped && !options.hovering && activity.observed > activity.swept && allQuiet(options.quietMs, start)) await sweep();
    }
    activity.navigating = false;
    for (const [link, target] of activity.retargeted.splice(0)) {
      if (target === null) link.removeAttribute("target");
      else link.setAttribute("target", target);
    }
    if (!options.hovering) normalise();
    return { capped, ms: now() - start };
  };

  // ---- MD5 (RFC 1321), for element hashes ------------------------------------------------------------------------

  const SHIFTS = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21];
  const SINES = Int32Array.from({ length: 64 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 2 ** 32) | 0);
  const utf8 = new TextEncoder();
  const md5 = (text) => {
    const bytes = utf8.encode(text);
    const words = new Int32Array((((bytes.length + 8) >> 6) + 1) * 16);
    for (let i = 0; i < bytes.length; i++) words[i >> 2] |= bytes[i] << ((i & 3) * 8);
    words[bytes.length >> 2] |= 0x80 << ((bytes.length & 3) * 8);
    words[words.length - 2] = bytes.length * 8;
    let [a0, b0, c0, d0] = [0x67452301, 0xefcdab89 | 0, 0x98badcfe | 0, 0x10325476];
    for (let block = 0; block < words.length; block += 16) {
      let a = a0, b = b0, c = c0, d = d0;
      for (let i = 0; i < 64; i++) {
        const round = i >> 4;
        let mix, word;
        if (round === 0) { mix = (b & c) | (~b & d); word = i; }
        else if (round === 1) { mix = (d & b) | (~d & c); word = (5 * i + 1) & 15; }
        else if (round === 2) { mix = b ^ c ^ d; word = (3 * i + 5) & 15; }
        else { mix = c ^ (b | ~d); word = (7 * i) & 15; }
        const sum = (a + mix + SINES[i] + words[block + word]) | 0;
        const shift = SHIFTS[round * 4 + (i & 3)];
        a = d; d = c; c = b;
        b = (b + ((sum << shift) | (sum >>> (32 - shift)))) | 0;
      }
      a0 = (a0 + a) | 0; b0 = (b0 + b) | 0; c0 = (c0 + c) | 0; d0 = (d0 + d) | 0;
    }
    let hex = "";
    for (const word of [a0, b0, c0, d0]) {
      for (let i = 0; i < 32; i += 8) hex += ((word >>> i) & 255).toString(16).padStart(2, "0");
    }
    return hex;
  };

  // ---- Roles and names (the part of WAI-ARIA 1.2 and AccName 1.2 that covers what people click) -------------------

  const INPUT_ROLES = {
    button: "button", submit: "button", reset: "button", image: "button", file: "button",
    checkbox: "checkbox", radio: "radio", range: "slider", number: "spinbutton", search: "searchbox",
  };
  const TAG_ROLES = {
    button: "button", summary: "button", textarea: "textbox", h1: "heading", h2: "heading", h3: "heading",
    h4: "heading", h5: "heading", h6: "heading", img: "img", svg: "img", td: "cell", li: "listitem", nav: "navigation",
    main: "main", dialog: "dialog", option: "option", progress: "progressbar", meter: "meter", output: "status",
  };
  const FIELD_ROLES = new Set([
    "textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "slider", "spinbutton",
  ]);
  const roleOf = (node) => {
    const element = plain(node);
    const explicit = element.getAttribute("role")?.trim().split(/\s+/)[0];
    if (explicit && explicit !== "none" && explicit !== "presentation") return explicit;
    const tag = element.localName;
    if (tag === "a" || tag === "area") return element.hasAttribute("href") ? "link" : "";
    if (tag === "input") return INPUT_ROLES[element.type] || (element.type === "hidden" ? "" : "textbox");
    if (tag === "select") return element.multiple || element.size > 1 ? "listbox" : "combobox";
    if (tag === "th") return element.scope === "row" ? "rowheader" : "columnheader";
    if (element.isContentEditable && !element.parentElement?.isContentEditable) return "textbox";
    return TAG_ROLES[tag] || "";
  };

  // A form answers with its fields where they are named like its properties: an <input name=children> hides the form's
  // children. Properties of forms are therefore read through the prototype.
  const formReader = {
    get(form, name) {
      for (let proto = HTMLFormElement.prototype; proto; proto = Object.getPrototypeOf(proto)) {
        const property = Object.getOwnPropertyDescriptor(proto, name);
        if (property) {
          if (property.get) return property.get.call(form);
          return typeof property.value === "function" ? property.value.bind(form) : property.value;
        }
      }
      return undefined;
    },
  };
  const plain = (element) => (element instanceof HTMLFormElement ? new Proxy(element, formReader) : element);
  const documentTitle = Object.getOwnPropertyDescriptor(Document.prototype, "title").get;

  const MAX_TEXT = 300;
  const squeeze = (text) =>
    text.replace(/\s+/g, " ").trim().slice(0, MAX_TEXT).replace(/[\uD800-\uDBFF]$/, "").toWellFormed();
  const UNTEXTUAL = new Set(["script", "style", "noscript", "template", "select", "textarea"]);
  const BLOCK = /^(block|flex|grid|table|list-item|table-cell|table-row|flow-root)$/;

  const contentText = (node) => {
    const element = plain(node);
    let text = "";
    const walk = (parent) => {
      for (const original of parent.childNodes) {
        if (text.length > MAX_TEXT) return;
        if (original.nodeType === 3) text += original.data;
        const child = plain(original);
        if (child.nodeType !== 1 || UNTEXTUAL.has(child.localName)) continue;
        if (child.getAttribute("aria-hidden") === "true") continue;
        const { display } = getComputedStyle(original);
        if (display !== "contents" && !child.checkVisibility({ visibilityProperty: true })) continue;
        const apart = BLOCK.test(display) || child.localName === "br" ? " " : "";
        const label = child.getAttribute("aria-label") || (child.localName === "img" ? child.alt : "");
        text += apart;
        if (label) text += ` ${label} `;
        else if (child.localName === "svg") text += ` ${child.querySelector(":scope > title")?.textContent || ""} `;
        else walk(child.shadowRoot || child);
        text += apart;
      }
    };
    walk(element.shadowRoot && !element.childNodes.length ? element.shadowRoot : element);
    return squeeze(text);
  };

  const nameOf = (node, role) => {
    const element = plain(node);
    const ids = element.getAttribute("aria-labelledby");
    if (ids) {
      const root = element.getRootNode();
      const parts = ids.split(/\s+/).map((id) => root.getElementById?.(id)).filter(Boolean);
      const text = squeeze(parts.map((part) => part.getAttribute("aria-label") || part.textContent).join(" "));
      if (text) return text;
    }
    const label = squeeze(element.getAttribute("aria-label") || "");
    if (label) return label;
    const tag = element.localName;
    if (tag === "img" || (tag === "input" && element.type === "image")) return squeeze(element.alt || element.title || "");
    if (tag === "svg") return squeeze(element.querySelector(":scope > title")?.textContent || "");
    if (tag === "input" && INPUT_ROLES[element.type] === "button") {
      return squeeze(element.value || element.title || { submit: "Submit", reset: "Reset" }[element.type] || "");
    }
    if (FIELD_ROLES.has(role)) {
      const labels = element.labels ? [...element.labels].map(contentText).join(" ") : "";
      return squeeze(labels || element.getAttribute("placeholder") || element.title || element.name || "");
    }
    return contentText(node) || squeeze(element.title || "");
  };

  // ---- The pass: which elements are exposed, which can be acted on, what do they say? -----------------------------

  const NEVER = new Set([
    "script", "style", "noscript", "template", "meta", "link", "base", "title", "head", "source", "track", "param",
    "br", "wbr", "datalist", "map",
  ]);
  const LEAVES = new Set(["svg", "select", "canvas", "video", "audio", "object", "embed", "textarea"]);
  const SPEAKING = new Set(["heading", "columnheader", "rowheader", "cell", "listitem", "status"]);
  const EVERYWHERE = { left: -1e9, top: -1e9, right: 1e9, bottom: 1e9 };
  const intersect = (a, b) => ({
    left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom),
  });
  const isEmpty = (rect) => rect.right - rect.left <= 0 || rect.bottom - rect.top <= 0;

  const stepName = (element, index) =>
    element.namespaceURI === "http://www.w3.org/1999/xhtml"
      ? `${element.localName}[${index}]`
      : `*[name()="${element.nodeName}"][${index}]`;

  // The rectangle outside of which the children of an element cannot be seen, not even by scrolling.
  const clipBelow = (element, style, rect, clip) => {
    if (element.localName === "body" || element.localName === "html") return clip;
    const { overflowX: x, overflowY: y } = style;
    if (x === "visible" && y === "visible") return clip;
    const seen = intersect(rect, clip);
    if (isEmpty(seen)) return seen;
    const bounds = { ...clip };
    const cuts = (value) => value === "hidden" || value === "clip";
    const scrolls = (value) => value === "auto" || value === "scroll";
    if (cuts(x)) [bounds.left, bounds.right] = [seen.left, seen.right];
    if (cuts(y)) [bounds.top, bounds.bottom] = [seen.top, seen.bottom];
    if (scrolls(x)) {
      bounds.left = rect.left - element.scrollLeft;
      bounds.right = Math.max(rect.right, bounds.left + element.scrollWidth);
    }
    if (scrolls(y)) {
      bounds.top = rect.top - element.scrollTop;
      bounds.bottom = Math.max(rect.bottom, bounds.top + element.scrollHeight);
    }
    return bounds;
  };

  const stableSelector = (node) => {
    const element = plain(node);
    for (const name of ["data-testid", "data-test-id", "data-test", "data-qa", "data-cy"]) {
      const value = element.getAttribute(name);
      if (value) return `[${name}="${CSS.escape(value)}"]`;
    }
    return element.id && !/\d{3,}|:/.test(element.id) ? `#${CSS.escape(element.id)}` : "";
  };

  const linkTarget = (element) =>
    (element.localName === "a" || element.localName === "area") && typeof element.href === "string" &&
    URL.canParse(element.href)
      ? element.href
      : "";

  const REVEALS =
    /(^|;)\s*(display|visibility|opacity|max-height|height|transform|clip|clip-path|left|top|right|grid-template-rows)\s*:/;
  // [selector of the hovered element, selector of what the rule is about], for rules that could reveal something.
  const hoverRules = (doc) => {
    const found = [];
    const read = (rules) => {
      for (const rule of rules) {
        if (rule.selectorText?.includes(":hover") && REVEALS.test(rule.style.cssText)) {
          for (const selector of rule.selectorText.split(/,(?![^(]*\))/)) {
            const at = selector.indexOf(":hover");
            // The rule must be about something else than the hovered element itself.
            if (at >= 0 && /^[^\s>+~]*[\s>+~]/.test(selector.slice(at + 6))) {
              found.push([selector.slice(0, at).trim() || "*", selector.replace(/:hover/g, "")]);
            }
          }
        }
        if (rule.cssRules?.length) read(rule.cssRules);
      }
    };
    for (const sheet of [...doc.styleSheets, ...(doc.adoptedStyleSheets || [])]) {
      try {
        read(sheet.cssRules);
      } catch {
        // a style sheet of another origin: its rules cannot be read
      }
    }
    return found;
  };

  const hoverTargets = (doc) => {
    const targets = new Set();
    const hidden = (element) =>
      !element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && element.textContent.trim() !== "";
    for (const [hovered, revealed] of hoverRules(doc)) {
      let owners, parts;
      try {
        owners = doc.querySelectorAll(hovered);
        parts = [...doc.querySelectorAll(revealed)];
      } catch {
        continue; // a selector that querySelectorAll refuses (a pseudo-element, say) reveals no element
      }
      for (const owner of owners) {
        // What the pointer holds open right now is still something that hovering opens.
        const opens = (part) => owner.matches(":hover") || hidden(part);
        if (!parts.some((part) => owner.parentElement?.contains(part) && opens(part))) continue;
        // Point at what a person would point at: the link or button that the hovered box carries.
        const trigger = owner.matches("a, button, [role], [tabindex]")
          ? owner
          : owner.querySelector(":scope > a, :scope > button, :scope > [role], :scope > [tabindex]");
        targets.add(trigger?.checkVisibility() ? trigger : owner);
      }
    }
    for (const element of doc.querySelectorAll("[onmouseenter], [onmouseover]")) targets.add(element);
    return targets;
  };

  const pass = (options) => {
    const roles = new Set(options.roles);
    const hashes = [];
    const candidates = [];
    const elements = []; // parallel to candidates
    const segments = [];
    let segmentsCut = 0;

    const addSegment = (text, role, rect, origin) => {
      const clean = squeeze(text);
      if (!clean) return;
      if (segments.length >= options.maxSegments) segmentsCut += 1;
      else {
        segments.push([
          clean, role, Math.round(rect.left + origin.x), Math.round(rect.top + origin.y),
          Math.round(rect.width), Math.round(rect.height),
        ]);
      }
    };

    const addCandidate = (kind, node, role, where, rect) => {
      const element = plain(node);
      const tag = element.localName;
      const button = (tag === "button" && element.type === "submit") ||
        (tag === "input" && (element.type === "submit" || element.type === "image"));
      candidates.push({
        kind, role, name: nameOf(node, role), xpath: where.path, frame: where.frame, css: stableSelector(node),
        target: linkTarget(node), tag,
        disabled: element.matches(":disabled") || element.getAttribute("aria-disabled") === "true",
        submits: button && element.form ? (element.getAttribute("formmethod") || formMethod.call(element.form)).toLowerCase() : "",
        download: element.hasAttribute("download"),
        box: [
          Math.round(rect.left + where.origin.x), Math.round(rect.top + where.origin.y),
          Math.round(rect.width), Math.round(rect.height),
        ],
      });
      elements.push(node);
    };

    const inlineOnly = (element) => {
      for (const original of plain(element).children) {
        const child = plain(original);
        const tag = child.localName;
        if (NEVER.has(tag)) continue;
        const role = roleOf(original);
        if (LEAVES.has(tag) || tag === "img" || tag === "iframe" || child.shadowRoot) return false;
        if (roles.has(role) || FIELD_ROLES.has(role)) return false;
        const { display } = getComputedStyle(original);
        if (display === "none") continue;
        if (!display.startsWith("inline") && display !== "contents") return false;
        if (!inlineOnly(original)) return false;
      }
      return true;
    };

    const speak = (element, role, rect, origin) => {
      if (roles.has(role) || FIELD_ROLES.has(role) || role === "img") {
        addSegment(nameOf(element, role), role, rect, origin);
        return true;
      }
      if (!plain(element).shadowRoot && inlineOnly(element)) {
        addSegment(contentText(element), role || "text", rect, origin);
        return true;
      }
      for (const node of plain(element).childNodes) {
        if (node.nodeType === 3) addSegment(node.data, SPEAKING.has(role) ? role : "text", rect, origin);
      }
      return false;
    };

    // A label stands for its checkbox or radio button when that is not itself to be seen (CSS-only menus and tabs).
    const standsForControl = (element) => {
      const control = element.localName === "label" && element.control;
      if (!control || !["checkbox", "radio"].includes(control.type)) return false;
      const rect = control.getBoundingClientRect();
      const visible = control.checkVisibility({ opacityProperty: true, visibilityProperty: true });
      return !visible || rect.width <= 2 || rect.height <= 2 || rect.right <= 0;
    };

    const act = (node, tag, role, style, where, rect) => {
      const element = plain(node);
      if (options.hover && where.hovers.has(node)) addCandidate("hover", node, role, where, rect);
      if (roles.has(role)) {
        addCandidate("click", node, role, where, rect);
        return true;
      }
      if (FIELD_ROLES.has(role) || where.inside || tag === "body" || tag === "html" || tag === "iframe") return where.inside;
      if (tag === "label" && element.control) {
        if (!standsForControl(element)) return true;
      } else if (!element.hasAttribute("onclick") && typeof element.onclick !== "function") {
        if (style.cursor !== "pointer" || where.pointer) return false;
      }
      addCandidate("click", node, role, where, rect);
      return false;
    };

    const visit = (node, where) => {
      const element = plain(node);
      const tag = element.localName;
      if (NEVER.has(tag) || element.getAttribute("aria-hidden") === "true" || element.inert) return;
      const style = getComputedStyle(node);
      const boxless = style.display === "contents";
      if (!boxless && (!element.checkVisibility() || style.opacity === "0")) return;
      const rect = element.getBoundingClientRect();
      let { clip } = where;
      if (style.position === "fixed") clip = EVERYWHERE;
      else if (style.position === "absolute") clip = where.absolute;
      const exposed =
        !boxless && style.visibility === "visible" && rect.width > 0 && rect.height > 0 &&
        !isEmpty(intersect(intersect(rect, clip), where.view)) &&
        (where.modal === null || where.modal.contains(node));
      const below = { ...where };
      if (exposed) {
        const role = roleOf(node);
        hashes.push(md5(where.hashPrefix + where.path));
        below.inside = act(node, tag, role, style, where, rect);
        below.pointer = style.cursor === "pointer";
        if (!where.spoken) below.spoken = speak(node, role, rect, where.origin);
      }
      if (LEAVES.has(tag)) return;
      if (tag === "iframe" || tag === "frame") {
        if (exposed) visitFrame(element, where, rect);
        return;
      }
      below.clip = boxless ? clip : clipBelow(element, style, rect, clip);
      if (style.position !== "static" || style.transform !== "none") below.absolute = below.clip;
      if (element.shadowRoot) visitChildren(element.shadowRoot, { ...below, path: `${where.path} >>> ` });
      visitChildren(element, below);
    };

    const visitChildren = (parent, below) => {
      const counts = new Map();
      for (const child of parent.children) {
        const { nodeName } = plain(child);
        const index = (counts.get(nodeName) || 0) + 1;
        counts.set(nodeName, index);
        visit(child, { ...below, path: `${below.path}/${stepName(plain(child), index)}` });
      }
    };

    const visitFrame = (element, where, rect) => {
      let doc = null;
      try {
        doc = element.contentDocument;
      } catch {
        doc = null; // another origin: only the frame's own element is part of this state
      }
      if (!doc?.documentElement) return;
      const origin = { x: where.origin.x + rect.left + element.clientLeft, y: where.origin.y + rect.top + element.clientTop };
      visitDocument(doc, [...where.frame, where.path], origin);
    };

    const visitDocument = (doc, frame, origin) => {
      const root = doc.documentElement;
      const win = doc.defaultView;
      if (!root) return; // a script emptied the document
      const modals = doc.querySelectorAll(":modal");
      visit(root, {
        path: `/${stepName(root, 1)}`, frame, origin,
        hashPrefix: frame.map((step) => `${step} ||| `).join(""),
        clip: EVERYWHERE, absolute: EVERYWHERE,
        view: {
          left: -win.scrollX, top: -win.scrollY,
          right: Math.max(root.scrollWidth, win.innerWidth) - win.scrollX,
          bottom: Math.max(root.scrollHeight, win.innerHeight) - win.scrollY,
        },
        modal: modals.length ? modals[modals.length - 1] : null, // everything else is inert then
        hovers: options.hover ? hoverTargets(doc) : new Set(),
        pointer: false, inside: false, spoken: false,
      });
    };

    visitDocument(document, [], { x: window.scrollX, y: window.scrollY });
    const counts = new Map();
    for (const candidate of candidates) {
      const key = stringify([candidate.kind, candidate.frame, candidate.role, candidate.name]);
      candidate.nth = counts.get(key) || 0;
      counts.set(key, candidate.nth + 1);
    }
    return { hashes, candidates, elements, segments, segmentsCut };
  };

  const storageDigest = () => {
    const read = (storage) => {
      const items = {};
      for (let i = 0; i < storage.length; i++) items[storage.key(i)] = md5(storage.getItem(storage.key(i)));
      return items;
    };
    try {
      return { local: read(localStorage), session: read(sessionStorage) };
    } catch {
      return { local: {}, session: {} }; // storage is denied to this document (an opaque origin)
    }
  };

  const takeActivity = () => {
    const { opened, tabs, stopped } = activity;
    activity.opened = 0;
    activity.tabs = [];
    activity.stopped = [];
    return { opened, tabs, stopped };
  };

  const snapshot = (options) => {
    const described = pass(options);
    const result = {
      url: location.href,
      title: squeeze(documentTitle.call(document)),
      contentType: document.contentType,
      status: performance.getEntriesByType("navigation")[0]?.responseStatus || 0,
      structure: [...new Set(described.hashes)].sort(),
      candidates: described.candidates,
      segments: described.segments,
      segmentsCut: described.segmentsCut,
      storage: storageDigest(),
      ...takeActivity(),
    };
    for (const inner of innerWaygraphs(window)) {
      const theirs = inner.takeActivity();
      for (const key of Object.keys(theirs)) result[key] = result[key].concat?.(theirs[key]) ?? result[key] + theirs[key];
    }
    return result;
  };

  // ---- Finding a recorded element again, and a point of it that takes the pointer ---------------------------------

  const masked = (text) => text.replace(/\d+/g, "#");
  const ladder = (action, described) => {
    const frame = stringify(action.frame);
    const here = described.candidates
      .map((candidate, i) => [candidate, described.elements[i]])
      .filter(([c]) => c.kind === action.kind && stringify(c.frame) === frame && c.role === action.role);
    const alike = here.filter(([c]) => c.name === action.name && (!action.target || c.target === action.target));
    const samePlace = alike.find(([c]) => c.xpath === action.xpath);
    if (samePlace) return [samePlace[1], "exact"];
    if (alike.length === 1) return [alike[0][1], "role"];
    const nth = alike.find(([c]) => c.nth === action.nth);
    if (nth) return [nth[1], "role"];
    // The name changed: only an element that is otherwise the same one may be used.
    const related = here.filter(([c]) =>
      action.target ? c.target === action.target : masked(c.name) === masked(action.name));
    const byPath = related.find(([c]) => c.xpath === action.xpath);
    if (byPath) return [byPath[1], "xpath"];
    const byCss = related.find(([c]) => action.css && c.css === action.css);
    return byCss ? [byCss[1], "css"] : null;
  };

  const takesPointer = (element, x, y) => {
    let top = element.ownerDocument.elementFromPoint(x, y);
    while (top?.shadowRoot) {
      const deeper = top.shadowRoot.elementFromPoint(x, y);
      if (!deeper || deeper === top) break;
      top = deeper;
    }
    for (let node = top; node; node = node.parentNode || node.host) if (node === element) return true;
    return false;
  };

  const pointOf = (element) => {
    element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const view = element.ownerDocument.defaultView;
    const screen = { left: 0, top: 0, right: view.innerWidth, bottom: view.innerHeight };
    let first = null;
    for (const rect of element.getClientRects()) {
      const box = intersect(rect, screen);
      if (isEmpty(box)) continue;
      for (const [fx, fy] of [[0.5, 0.5], [0.15, 0.5], [0.85, 0.5], [0.5, 0.15], [0.5, 0.85]]) {
        let [x, y] = [box.left + (box.right - box.left) * fx, box.top + (box.bottom - box.top) * fy];
        first ||= [x, y];
        if (!takesPointer(element, x, y)) continue;
        for (let win = view; win !== window; win = win.parent) {
          const frame = win.frameElement;
          const outer = frame.getBoundingClientRect();
          [x, y] = [x + outer.left + frame.clientLeft, y + outer.top + frame.clientTop];
        }
        return { x, y };
      }
    }
    const over = first && element.ownerDocument.elementFromPoint(first[0], first[1]);
    return { covered: over ? over.outerHTML.slice(0, 120) : "it lies outside the page" };
  };

  // A link of ours into a new tab is made to load in this one, for this click: so its document is guarded.
  const stayInTab = (element) => {
    const link = element.closest("a, area");
    if (!window[KEY].guarded || !link || !isNewTab(targetOf(link))) return false;
    activity.retargeted.push([link, link.getAttribute("target")]);
    link.setAttribute("target", "_top");
    return true;
  };

  const find = (action, options) => {
    const found = ladder(action, pass(options));
    if (!found) return { rung: "" };
    const point = pointOf(found[0]);
    const newTab = action.kind === "click" && !point.covered && stayInTab(found[0]);
    return { rung: found[1], newTab, ...point };
  };

  Object.defineProperty(window, KEY, {
    enumerable: false,
    value: {
      guarded: false, // whether this is a page of our own, whose new tabs the driver opens
      isQuiet,
      takeActivity,
      navigationFailed: () => {
        activity.navigating = false;
      },
      observe: async (options) => {
        const settled = await settle(options);
        return stringify({ settled, ...snapshot(options) });
      },
      find: (action, options) => stringify(find(action, options)),
    },
  });
})();
