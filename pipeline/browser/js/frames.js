// Which documents are inside of this one, and which of them can only be asked, since they are of another origin?

const FRAMES = "iframe, frame, object, embed";
const FRAME_TAGS = new Set(FRAMES.split(", "));
const TOKEN = Symbol.for("waygraph frame"); // the driver's name for a frame's element

const windowIn = (element) => {
  if (element.localName !== "embed") return element.contentWindow ?? null;
  const around = element.ownerDocument.defaultView;
  for (let i = 0; i < around.length; i++) {
    try {
      if (around[i].frameElement === element) return around[i];
    } catch {
      // another origin
    }
  }
  return null;
};
// The document that a frame shows; nothing when there is none, or none that may be read from here.
const documentIn = (element) => {
  try {
    return (element.localName === "embed" ? windowIn(element)?.document : element.contentDocument) ?? null;
  } catch {
    return null;
  }
};
// Scripts can run in it, ours too, and it is of another origin.
const isForeign = (element) =>
  documentIn(element) === null && windowIn(element) !== null && (!element.sandbox?.length || element.sandbox.contains("allow-scripts"));

// A document without frames, as most are, says so without being searched.
const frameCount = Function.prototype.call.bind(readProperty(window, "length").get); // of those outside of shadow roots
const framesIn = (doc) => (doc.defaultView && frameCount(doc.defaultView) === 0 ? [] : doc.querySelectorAll(FRAMES));
const shadowRoots = () => [...shadowHosts].filter((host) => host.isConnected).map((host) => shadowOf(host));
const framesOf = function* (win) {
  const roots = win === window ? shadowRoots() : win[KEY]?.shadowRoots() ?? [];
  yield* framesIn(win.document);
  for (const root of roots) yield* root.querySelectorAll(FRAMES);
};
// What is known of the windows in this one that are of its origin.
const innerWaygraphs = function* (win) {
  for (const frame of framesOf(win)) {
    const inner = documentIn(frame)?.defaultView;
    if (!inner) continue;
    if (inner[KEY]) yield inner[KEY];
    yield* innerWaygraphs(inner);
  }
};
const foreignFrames = function* (win) {
  for (const frame of framesOf(win)) {
    const inner = documentIn(frame)?.defaultView;
    if (inner) yield* foreignFrames(inner);
    else if (isForeign(frame)) yield frame;
  }
};
// For each: the driver's name for it, whether it is sandboxed, and what `describe` says of it. See `foreign.py`.
const tellForeign = (describe = () => null) =>
  [...foreignFrames(window)].map((frame) => [frame[TOKEN] ?? "", Boolean(frame.sandbox?.length), describe(frame)]);

// The frame that a recorded path of XPaths leads to, as far as documents may be read from here, and what is left of the path.
const followFrames = (xpaths) => {
  let doc = document;
  let frame = null;
  let left = [...xpaths];
  while (left.length && doc) {
    frame = resolve(left[0], doc);
    left = left.slice(1);
    doc = frame && FRAME_TAGS.has(frame.localName) ? documentIn(frame) : null;
  }
  return { doc, frame, left };
};

// Bring a point of a frame of another origin into view; where it is then, in this window. The browser sends pointers to
// the processes of frames by what it drew last.
const reveal = async (xpaths, x, y) => {
  const point = withNatives(() => bringIntoView(xpaths, x, y));
  await frame();
  await frame();
  return stringify(point);
};
const bringIntoView = (xpaths, x, y) => {
  const { doc, frame } = followFrames(xpaths);
  if (doc || !frame) return { covered: "its frame is gone" };
  scrollTo(frame);
  const view = frame.ownerDocument.defaultView;
  const place = () => {
    const rect = frame.getBoundingClientRect();
    return [rect.left + frame.clientLeft + x, rect.top + frame.clientTop + y];
  };
  let [left, top] = place();
  if (left < 0 || top < 0 || left >= view.innerWidth || top >= view.innerHeight) {
    view.scrollBy({ left: left - view.innerWidth / 2, top: top - view.innerHeight / 2, behavior: "instant" });
    [left, top] = place();
  }
  if (!takesPointer(frame, left, top)) return { covered: "something lies over its frame" };
  return inTop(view, left, top);
};
