// Where is a recorded element now, and which point of it takes the pointer?

// Counts, times and ages ("just now", "2 minutes ago", "27s ago") go on; they do not say which element it is.
const AGE =
  /(?:\ban?|#) (?:second|minute|hour|day|week|month|year)s?\b|# ?(?:s|secs?|m|mins?|h|hrs?|d|w|wks?|mos?|y|yrs?)\.?(?= ago\b)/gi;
const FRESH = /\b(?:just now|(?:a few )?(?:moments?|seconds?) ago)\b/gi;
const masked = (text) => text.replace(/\d+/g, "#").replace(FRESH, "# ages ago").replace(AGE, "# ages");
const sameTarget = (action, candidate) => !action.target || candidate.target === action.target;
// Session ids and tokens are drawn anew by every load; they do not say which element it is.
const DRAWN = /(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{12,}[\w.~%-]*|\d{9,}/gi;
const sameButDrawn = (action, candidate) =>
  sameTarget(action, candidate) || candidate.target.replace(DRAWN, "*") === action.target.replace(DRAWN, "*");

// The recorded element when it still is what and where it was; most often it is, and nothing else need be looked at.
// `named` says which names are its own.
const inPlace = (action, options, named, rung) => {
  const { doc } = followFrames(action.frame);
  const element = doc && resolve(action.xpath, doc);
  if (!element) return null;
  const alone = createLook({ ...options, hover: false, kind: action.kind }, element).ofAlone();
  const same = alone.some((c) =>
    c.role === action.role && named(c.name, action.name) && sameButDrawn(action, c));
  return same ? [element, rung] : null;
};

const ladder = (action, options) => {
  const seen = createLook(options).whole();
  const frame = stringify(action.frame);
  const frames = seen.documents.map(stringify);
  const here = seen.candidates
    .map((candidate, i) => [candidate, seen.elements[i]])
    .filter(([c]) => c.kind === action.kind && c.value === action.value && frames[c.frame] === frame && c.role === action.role);
  const named = here.filter(([c]) => c.name === action.name && sameButDrawn(action, c));
  const exact = named.filter(([c]) => sameTarget(action, c));
  const alike = exact.length ? exact : named;
  if (alike.length === 1) return [alike[0][1], "role"];
  const nth = alike.find(([c]) => c.nth === action.nth);
  if (nth) return [nth[1], "role"];
  // The name changed: only an element that is otherwise the same one may be used.
  const related = here.filter(([c]) =>
    action.target ? c.target === action.target : masked(c.name) === masked(action.name));
  const byPath = related.find(([c]) => seen.pathOf(c.place) === action.xpath);
  if (byPath) return [byPath[1], "xpath"];
  const byCss = related.find(([c]) => action.css && c.css === action.css);
  return byCss ? [byCss[1], "css"] : null;
};

const takesPointer = (element, x, y) => {
  let top = element.ownerDocument.elementFromPoint(x, y);
  while (top && shadowOf(top)) {
    const deeper = shadowOf(top).elementFromPoint(x, y);
    if (!deeper || deeper === top) break;
    top = deeper;
  }
  for (let node = top; node; node = node.parentNode || node.host) if (node === element) return true;
  return false;
};

const moved = []; // [box, scrollTop, scrollLeft before, and after] of what was scrolled to reach an element
// Sideways no further than it must be: a box that hides what stands beside its content would show it ever after.
const scrollTo = (element, inline = "nearest") => {
  const boxes = [];
  for (let node = element.parentNode; node; node = node.parentNode || node.host) {
    if (node.nodeType === 1) boxes.push([node, node.scrollTop, node.scrollLeft]);
  }
  element.scrollIntoView({ block: "center", inline, behavior: "instant" });
  for (const [box, top, left] of boxes) {
    if (box.scrollTop !== top || box.scrollLeft !== left) moved.push([box, top, left, box.scrollTop, box.scrollLeft]);
  }
};
// Put back what was scrolled, the last first, unless it was moved on since.
const scrollBack = () => {
  for (const [box, top, left, movedTop, movedLeft] of moved.splice(0).reverse()) {
    if (box.scrollTop === movedTop && box.scrollLeft === movedLeft) box.scrollTo({ top, left, behavior: "instant" });
  }
};

const boxPoints = (rect, screen) => {
  const box = intersect(rect, screen);
  if (isEmpty(box)) return [];
  return [[0.5, 0.5], [0.15, 0.5], [0.85, 0.5], [0.5, 0.15], [0.5, 0.85]].map(
    ([fx, fy]) => [box.left + (box.right - box.left) * fx, box.top + (box.bottom - box.top) * fy]);
};
// Points of an element at which a pointer could be, in its window.
const pointsOf = (element, screen) => {
  if (element.localName === "area") return boxPoints(areaRect(element, imageOf(element)), screen);
  return [...element.getClientRects()].flatMap((rect) => boxPoints(rect, screen));
};

// Where a point of a window is in this one.
const inTop = (view, x, y) => {
  for (let win = view; win !== window; win = win.parent) {
    const frame = win.frameElement;
    const outer = frame.getBoundingClientRect();
    [x, y] = [x + outer.left + frame.clientLeft, y + outer.top + frame.clientTop];
  }
  return { x, y };
};
const pointOf = (element) => {
  const target = element.localName === "area" ? imageOf(element) : element;
  const view = element.ownerDocument.defaultView;
  let points = [];
  for (const inline of ["nearest", "center"]) {
    scrollTo(target, inline);
    points = pointsOf(element, { left: 0, top: 0, right: view.innerWidth, bottom: view.innerHeight });
    const free = points.find(([x, y]) => takesPointer(element, x, y));
    if (free) return inTop(view, ...free);
  }
  const over = points.length ? element.ownerDocument.elementFromPoint(...points[0]) : null;
  // Half of a surrogate pair at the end could not be written down.
  return { covered: over ? over.outerHTML.slice(0, 120).replace(/[\ud800-\udbff]$/, "") : "it lies outside the page" };
};

// A link of ours into a new tab is made to load in this one, for this click: so its document is guarded.
const stayInTab = (element) => {
  const link = element.closest("a, area");
  if (!window[KEY].guarded || !link || !isNewTab(targetOf(link))) return false;
  activity.retargeted.push([link, link.getAttribute("target")]);
  link.setAttribute("target", "_top");
  return true;
};

const EVENTS_OF = {
  click: [...CLICKS, "change", "input"], dblclick: ["dblclick", ...CLICKS], contextmenu: ["contextmenu", "auxclick"],
  hover: [...HOVERS, ...LEAVES_POINTER], press: KEYS, input: TYPING, submit: [...TYPING, "submit"],
  focus: [...FOCUSING, ...LEAVES_FOCUS], select: ["change", "input"],
};
// Elements with which the browser itself does something, whether or not a script listens.
const ACTIVE = "label, summary, button, input, select, textarea, [popovertarget], [commandfor], [contenteditable]";
// Whether a script, or the browser, may do something in the page (not: load another) when this is done to the element.
const mayAnswer = (element, kind) => {
  const own = element.ownerDocument.defaultView[KEY];
  return !own?.guarded || element.closest(ACTIVE) !== null || own.isHandled(element, EVENTS_OF[kind] || []);
};

const TOUCHES = ["touchstart", "touchend"];
const touch = (element) => {
  for (const type of TOUCHES) {
    const event = typeof TouchEvent === "function" ? TouchEvent : UIEvent;
    element.dispatchEvent(new event(type, { bubbles: true, cancelable: true, composed: true }));
  }
};
const isTouched = (element) => {
  const own = element.ownerDocument.defaultView[KEY];
  return own?.guarded && own.isHandled(element, TOUCHES) && hasAny(own.readHandlers().get(element) || NOTHING, TOUCHES);
};
// What needs no pointer is done here, as far as it needs no keyboard either.
const withoutPointer = (element, { kind, value }) => {
  acted();
  scrollTo(element);
  if (kind === "select") {
    const option = Array.from(element.options).find((one) => squeeze(one.label) === value);
    if (!option) return { covered: `no option ${value}` };
    option.selected = true;
    for (const type of ["input", "change"]) element.dispatchEvent(new Event(type, { bubbles: true, composed: type === "input" }));
    return {};
  }
  element.focus({ preventScroll: true });
  if (kind === "focus" && value === "away") element.blur();
  if (kind === "input" || kind === "submit") element.select?.();
  return {};
};
const POINTED = new Set(["click", "dblclick", "contextmenu", "hover"]);

// The field that has the focus tells that its value changed, which browsers say when it loses the focus.
const changed = () => {
  let element = document.activeElement;
  for (;;) {
    const inner = element && (shadowOf(element)?.activeElement ?? (FRAME_TAGS.has(element.localName) ? documentIn(element)?.activeElement : null));
    if (!inner) break;
    element = inner;
  }
  element?.dispatchEvent(new Event("change", { bubbles: true }));
};
// The recorded element is in a frame of another origin: which one must be asked for it, and the path to go on from there.
const elsewhere = (action, options) => {
  const { doc, frame, left } = followFrames(action.frame);
  if (doc || !frame || !isForeign(frame)) return null;
  const alone = createLook({ ...options, hover: false, kind: "" }, frame).ofAlone();
  return alone.length ? { foreign: frame[TOKEN] ?? "", left } : null;
};

// `row`: what was found of a row of a virtual list, nothing in it when it is gone.
const find = (action, options, row) => {
  const away = elsewhere(action, options);
  if (away) return away;
  // In pages that are not ours, what only listens is no candidate: the ladder does not find it when its name changed.
  const found = row !== undefined ? row
    : inPlace(action, options, (name, recorded) => name === recorded, "exact") ?? ladder(action, options) ??
      inPlace(action, options, (name, recorded) => masked(name) === masked(recorded), "xpath");
  if (!found) return { rung: "" };
  const [element, rung] = found;
  const handled = mayAnswer(element, action.kind);
  if (!POINTED.has(action.kind)) return { rung, newTab: false, handled, ...withoutPointer(element, action) };
  const point = pointOf(element);
  const click = action.kind === "click" && !point.covered;
  const newTab = click && stayInTab(element);
  if (click && isTouched(element)) touch(element);
  const draws = element.localName === "canvas" || element.querySelector("canvas") !== null;
  return { rung, newTab, handled, draws, ...point };
};
