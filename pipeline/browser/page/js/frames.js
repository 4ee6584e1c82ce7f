// Provides access to the documents in frames of the same origin, and reports frames of other origins, whose documents no
// script of this document can read.

const FRAMES = "iframe, frame, object, embed";
const FRAME_TAGS = new Set(FRAMES.split(", "));
const TOKEN = Symbol.for("waygraph frame"); // property of a frame's element that links it to Playwright's frame

/**
 * The window in a frame element.
 * @param {any} element
 * @returns {any}
 */
const windowIn = (element) => {
  if (element.localName !== "embed") return element.contentWindow ?? null;
  const outer = element.ownerDocument.defaultView;
  for (let i = 0; i < outer.length; i++) {
    try {
      if (outer[i].frameElement === element) return outer[i];
    } catch {
      // another origin
    }
  }
  return null;
};
/**
 * The document in a frame element; null if there is none, or it has another origin.
 * @param {any} element
 * @returns {Document | null}
 */
const documentIn = (element) => {
  try {
    return (element.localName === "embed" ? windowIn(element)?.document : element.contentDocument) ?? null;
  } catch {
    return null;
  }
};
/**
 * Whether a frame has another origin and can run scripts, also this one.
 * @param {any} element
 */
const isCrossOrigin = (element) =>
  documentIn(element) === null && windowIn(element) !== null && (!element.sandbox?.length || element.sandbox.contains("allow-scripts"));

/**
 * Whether a frame of this origin has loaded no document yet. Its empty one reports no navigations, unlike all later ones.
 * @param {any} frame
 */
const isEmptyFrame = (frame) => {
  const inner = documentIn(frame)?.defaultView;
  return Boolean(inner) && /** @type {any} */ (inner).navigation?.currentEntry === null;
};
/**
 * Wait for the document that a link or a form loads into an empty frame of this document.
 * @param {string} name Name of the frame.
 */
const awaitEmptyFrame = (name) => {
  for (const frame of name ? framesOf(window) : []) {
    if (windowIn(frame)?.name === name && isEmptyFrame(frame)) awaitLoading(frame);
  }
};

/** A fragment that may name a view of an application: `is_route` in core/urls.py decides. */
const IS_ROUTE = /^[^#]*#(?:[/!]|[?&]?[\w.:[\]-]{1,60}=[^=])/;
const STAMPS = /=[^&]*\d{9,}[^&]*/g; // values of a query that differ at each load
/**
 * The address of the document in a frame, if it is not the one that was loaded with the page; else "". The page's own
 * address stays the same when a link or a script loads another document into a frame, so this is part of its structure.
 * @param {Element | null} frame Null if it cannot be read from here.
 * @param {any} win The window in the frame.
 * @returns {string}
 */
const addressShown = (frame, win) => {
  const { origin, pathname, search, hash, protocol } = win.location;
  if (!protocol.startsWith("http")) return "";
  const address = (/** @type {any} */ url) =>
    url.origin + url.pathname + url.search.replace(STAMPS, "=") + (IS_ROUTE.test(url.hash) ? url.hash : "");
  const shown = address({ origin, pathname, search, hash });
  const isEmptyFirst = frame !== null && !frame.getAttribute("src") && !frame.getAttribute("data") && !frame.hasAttribute("srcdoc");
  const first = win.navigation?.entries()[0]?.url;
  return isEmptyFirst || (first && address(new URL(first)) !== shown) ? shown : "";
};

// Most documents have no frames; reading `window.length` is faster than a search.
const frameCount = Function.prototype.call.bind(/** @type {any} */ (readProperty(window, "length")).get); // without those in shadow roots
/**
 * Frame elements of a document, without those in shadow roots.
 * @param {Document} doc
 * @returns {Iterable<Element>}
 */
const framesIn = (doc) => (doc.defaultView && frameCount(doc.defaultView) === 0 ? [] : doc.querySelectorAll(FRAMES));
const shadowRoots = () => [...shadowHosts].filter((host) => host.isConnected).map((host) => shadowOf(host));
/**
 * Known shadow roots of a window's document.
 * @param {any} win
 * @returns {any[]}
 */
const rootsIn = (win) => (win === window ? shadowRoots() : win[KEY]?.shadowRoots() ?? []);
/**
 * Frame elements of a window's document, with those in shadow roots.
 * @param {any} win
 * @returns {Generator<any>}
 */
const framesOf = function* (win) {
  yield* framesIn(win.document);
  for (const root of rootsIn(win)) yield* root.querySelectorAll(FRAMES);
};
/**
 * This script in the frames of a window that have its origin, at any depth.
 * @param {any} win
 * @returns {Generator<WaygraphScript>}
 */
const innerScripts = function* (win) {
  for (const frame of framesOf(win)) {
    const inner = /** @type {any} */ (documentIn(frame)?.defaultView);
    if (!inner) continue;
    if (inner[KEY]) yield inner[KEY];
    yield* innerScripts(inner);
  }
};
/**
 * Frame elements whose documents have another origin, at any depth that can be read.
 * @param {any} win
 * @returns {Generator<any>}
 */
const crossOriginFrames = function* (win) {
  for (const frame of framesOf(win)) {
    const inner = documentIn(frame)?.defaultView;
    if (inner) yield* crossOriginFrames(inner);
    else if (isCrossOrigin(frame)) yield frame;
  }
};
/**
 * For each cross-origin frame: its token, whether it is sandboxed, and the result of `describe`. See
 * `cross_origin_frames.py`.
 * @param {(frame: Element) => FramePlace | null} [describe]
 * @returns {[string, boolean, FramePlace | null][]}
 */
const reportCrossOrigin = (describe = () => null) =>
  [...crossOriginFrames(window)].map((frame) => [frame[TOKEN] ?? "", Boolean(frame.sandbox?.length), describe(frame)]);

/**
 * Follow a recorded path of frames as far as documents can be read from here.
 * @param {string[]} xpaths
 * @returns {{ doc: Document | null, frame: any, remaining: string[] }} The document in the last frame that was found, that
 *   frame, and the rest of the path.
 */
const followFrames = (xpaths) => {
  /** @type {Document | null} */
  let doc = document;
  let frame = null;
  let remaining = [...xpaths];
  while (remaining.length && doc) {
    frame = resolve(remaining[0], doc);
    remaining = remaining.slice(1);
    doc = frame && FRAME_TAGS.has(frame.localName) ? documentIn(frame) : null;
  }
  return { doc, frame, remaining };
};

/**
 * Scroll a point of a cross-origin frame into view and return its position in this window, as JSON. Two frames must be
 * drawn after that: the browser sends pointer events to the process of a frame by what it drew last.
 * @param {string[]} xpaths
 * @param {number} x
 * @param {number} y
 */
const reveal = async (xpaths, x, y) => {
  const point = withNatives(() => scrollPointIntoView(xpaths, x, y));
  await nextFrame();
  await nextFrame();
  return stringify(point);
};
/**
 * @param {string[]} xpaths
 * @param {number} x
 * @param {number} y
 */
const scrollPointIntoView = (xpaths, x, y) => {
  const { doc, frame } = followFrames(xpaths);
  if (doc || !frame) return { obstacle: ["frame_missing", "its frame is gone"] };
  scrollToElement(frame);
  const view = frame.ownerDocument.defaultView;
  const position = () => {
    const rect = frame.getBoundingClientRect();
    return [rect.left + frame.clientLeft + x, rect.top + frame.clientTop + y];
  };
  let [left, top] = position();
  if (left < 0 || top < 0 || left >= view.innerWidth || top >= view.innerHeight) {
    view.scrollBy({ left: left - view.innerWidth / 2, top: top - view.innerHeight / 2, behavior: "instant" });
    [left, top] = position();
  }
  if (!takesPointer(frame, left, top)) return { obstacle: ["element_covered", "an element covers its frame"] };
  return inTopWindow(view, left, top);
};
