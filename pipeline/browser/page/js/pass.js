// Provides `passOverPage` and `passOverElement`: one pass over the exposed elements of a page, or over one element, which
// collects their places, candidates and texts.
//
// A place is the position of an element in the tree: the number of its parent's place, and the XPath step from there. The
// parent of the root of document n is the number -1 - n. Paths are computed from places where they are needed, which is
// mostly outside of the page.

const UNRENDERED_TAGS = new Set([
  "script", "style", "noscript", "template", "meta", "link", "base", "title", "head", "source", "track", "param",
  "br", "wbr", "datalist", "map",
]);
const LEAF_TAGS = new Set(["svg", "select", "canvas", "video", "audio", "object", "embed", "textarea"]);
const MAX_EXPOSED = 20_000; // elements of one pass; a larger page is cut
/** @type {Handlers} */
const NO_HANDLERS = new Map();

/**
 * @param {SnapshotOptions} options
 * @param {Element | null} [only] Consider this element only; of the others, its ancestors are walked.
 * @returns {Pass}
 */
const newPass = (options, only = null) => ({
  options,
  only,
  shown: only?.localName === "area" ? imageOf(only) : only,
  roles: new Set(options.roles),
  steps: [],
  parents: [],
  unexposed: [],
  documents: [],
  candidates: [],
  elements: [],
  segments: [],
  hidden: [],
  crossOrigin: new Map(),
  inlineOnly: new Map(),
  positions: options.outline ? new Map() : null,
  counts: { exposed: 0, clicks: 0, segmentsCut: 0 },
});

// ---- places ----

/**
 * Add a place, and those of its ancestors that have none because they are not exposed; returns its number.
 * @param {Pass} pass
 * @param {{ place: number | null, up?: any, step?: string }} outer
 * @param {string} step
 * @returns {number}
 */
const addPlace = (pass, outer, step) => {
  if (outer.place === null) {
    outer.place = addPlace(pass, outer.up, /** @type {string} */ (outer.step));
    pass.unexposed.push(outer.place);
  }
  pass.parents.push(outer.place);
  return pass.steps.push(step) - 1;
};
/**
 * The full XPath of a place.
 * @param {{ steps: string[], parents: number[] }} pass
 * @param {number} place
 * @returns {string}
 */
const pathOf = ({ steps, parents }, place) => {
  let path = "";
  for (let number = place; number >= 0; number = parents[number]) path = steps[number] + path;
  return path;
};

// ---- exposure of one element ----

/**
 * Clipping rectangle of an absolutely positioned element: that of its containing block, not of every ancestor.
 * @param {Position} position
 * @returns {Edges}
 */
const absoluteClip = (position) => {
  for (let up = position; up.style; up = /** @type {Position} */ (up.up)) {
    if (up.style.position !== "static" || up.style.transform !== "none") return up.clip;
  }
  return position.context.view;
};

/**
 * Describe one element, and add its candidates and texts if it is exposed.
 * @param {Pass} pass
 * @param {any} node
 * @param {any} element The node, unclobbered.
 * @param {string} step
 * @param {Position} outer
 * @returns {Position | null} The position for its children; null if they need not be visited.
 */
const enter = (pass, node, element, step, outer) => {
  const tag = element.localName;
  if (UNRENDERED_TAGS.has(tag) || element.getAttribute("aria-hidden") === "true" || element.inert) return null;
  // Reading one property of a style takes as long as reading a box. Properties that most elements do not need are read late.
  const style = styleOf(node);
  const visible = isVisible(node);
  let isBoxless = false;
  if (!visible) {
    const { display } = style;
    if (display === "none") return null;
    isBoxless = display === "contents";
    if (!isBoxless && !element.checkVisibility()) return null;
  }
  if (!isBoxless && isFaint(style)) return null;
  const { context } = outer;
  let { clip } = outer;
  if (clip !== context.view) {
    const { position } = style;
    if (position === "fixed") clip = context.view;
    else if (position === "absolute") clip = absoluteClip(outer);
  }
  let rect = element.getBoundingClientRect();
  const skipped = skippedRect(element, style, rect);
  if (skipped) {
    rect = skipped;
    clip = { ...clip, bottom: Math.max(clip.bottom, rect.bottom) };
  }
  const inFront = outer.inFront || node === context.modal;
  // Inside an SVG only links and elements with listeners count.
  const countsInSvg = !outer.inSvg || tag === "a" || pass.only !== null || hasAny(context.handlers.get(node) || NO_TYPES, CLICKS);
  const exposed =
    !isBoxless && rect.width > 0 && rect.height > 0 && (visible || style.visibility === "visible") && overlaps(rect, clip) &&
    countsInSvg && inFront && style.interactivity !== "inert"; // by a style sheet; inherited
  /** @type {Position} */
  const position = {
    up: outer, context, step, place: null, style, clip, rect, exposed, inFront,
    insideClicked: outer.insideClicked, hasPointerCursor: outer.hasPointerCursor, isTextTaken: outer.isTextTaken,
    inSvg: outer.inSvg || tag === "svg", pendingClick: -1, hasMarkers: outer.hasMarkers,
  };
  pass.positions?.set(node, position);
  if (exposed) {
    pass.counts.exposed += 1;
    const role = roleOf(node);
    position.place = pass.only ? -1 : addPlace(pass, outer, step);
    // Listeners are not known in pages of callers. A state must have the same structure in every page, hence elements that
    // are exposed because of listeners are no part of it.
    if (outer.inSvg && tag !== "a" && !pass.only) pass.unexposed.push(position.place);
    // Inside an element that is clicked as a whole, the cursor does not matter and is not read.
    position.hasPointerCursor = outer.insideClicked || style.cursor === "pointer";
    position.insideClicked = addActions(pass, node, element, role, outer, position);
    if (!outer.isTextTaken) position.isTextTaken = addTexts(pass, node, role, rect, context.origin);
  }
  if (inFront && !pass.only && hidesContent(element)) addHiddenTexts(pass, element, rect, context.origin);
  if (LEAF_TAGS.has(tag) && !FRAME_TAGS.has(tag) && !(tag === "svg" && (pass.only || context.activeSvgs.has(node)))) return null;
  if (exposed && outer.hasMarkers && !pass.only) addControls(pass, node, position, scrollMarkers(node));
  if (!isBoxless && (element.firstElementChild || shadowOf(node))) position.clip = childClip(element, style, rect, clip);
  if (position.clip !== clip && exposed && !pass.only) {
    addControls(pass, node, position, scrollButtons(node)); // a box that scrolls
    position.hasMarkers = markerRole(style) !== "";
  }
  return position;
};

// ---- walk ----

/**
 * @param {Pass} pass
 * @param {any} node
 * @param {any} element The node, unclobbered.
 * @param {string} step
 * @param {Position} outer
 */
const visit = (pass, node, element, step, outer) => {
  if (pass.counts.exposed >= MAX_EXPOSED) return;
  const tag = element.localName;
  const position = enter(pass, node, element, step, outer);
  if (!position) return;
  if (FRAME_TAGS.has(tag)) {
    if (position.exposed) visitFrame(pass, element, position);
    return;
  }
  if (tag === "img" && element.useMap && position.exposed) visitAreas(pass, element, position.context);
  const before = pass.counts.clicks;
  const shadow = shadowOf(node);
  if (shadow) visitChildren(pass, shadow, position, " >>> /");
  visitChildren(pass, element, position, "/");
  if (position.pendingClick >= 0 && pass.counts.clicks === before) {
    addCandidate(pass, ["click", ""], node, roleOf(node), position, position.pendingClick);
  }
};

/**
 * @param {Pass} pass
 * @param {any} parent
 * @param {Position} position
 * @param {string} separator
 */
const visitChildren = (pass, parent, position, separator) => {
  let child = parent.firstElementChild;
  if (!child) return;
  const counts = new Map();
  while (child) {
    const element = unclobbered(child);
    const { nodeName } = element;
    const index = (counts.get(nodeName) || 0) + 1;
    counts.set(nodeName, index);
    visit(pass, child, element, separator + stepName(element, index), position);
    child = element.nextElementSibling;
  }
};

/**
 * Add the links on parts of an image. Their elements are elsewhere in the document, and shown where the image is.
 * @param {Pass} pass
 * @param {any} image
 * @param {DocumentContext} context
 */
const visitAreas = (pass, image, context) => {
  for (const area of areasOf(image)) {
    const rect = areaRect(area, image);
    if (pass.roles.has(roleOf(area)) && !isEmpty(rect)) {
      const place = addPlace(pass, { place: -1 - context.number }, pathFromRoot(area));
      const position = { context, place, rect };
      if (pass.options.hover && isInvoker(area, "area")) addCandidate(pass, ["hover", ""], area, "link", position);
      addCandidate(pass, ["click", ""], area, "link", position);
    }
  }
};

/**
 * The origin of the document in a frame, in page coordinates.
 * @param {any} frame
 * @param {Rect} rect
 * @param {Point} origin
 * @returns {Point}
 */
const originIn = (frame, rect, { x, y }) => ({ x: x + rect.left + frame.clientLeft, y: y + rect.top + frame.clientTop });

/**
 * @param {Pass} pass
 * @param {any} frame
 * @param {Position} position
 */
const visitFrame = (pass, frame, { context, place, rect }) => {
  const doc = documentIn(frame);
  const path = [...pass.documents[context.number], pathOf(pass, /** @type {number} */ (place))];
  const origin = originIn(frame, rect, context.origin);
  if (doc?.documentElement) visitDocument(pass, doc, path, origin, addressShown(frame, doc.defaultView));
  // Of a frame of another origin only the element is known here.
  else if (!doc) pass.crossOrigin.set(frame, { path, origin, candidates: pass.candidates.length, segments: pass.segments.length });
};

/**
 * Position at the root of a document.
 * @param {Pass} pass
 * @param {Document} doc
 * @param {string[]} path XPaths of the frames that lead to it.
 * @param {Point} origin
 * @returns {Position}
 */
const rootPosition = (pass, doc, path, origin) => {
  const root = doc.documentElement;
  const win = /** @type {any} */ (doc.defaultView);
  const number = pass.documents.push(path) - 1;
  const readOf = win === window ? readHandlers : win[KEY]?.readHandlers;
  /** @type {DocumentContext} */
  const context = {
    number,
    origin,
    view: {
      left: -win.scrollX, top: -win.scrollY,
      right: Math.max(root.scrollWidth, win.innerWidth) - win.scrollX,
      bottom: Math.max(root.scrollHeight, win.innerHeight) - win.scrollY,
    },
    modal: modalOf(doc),
    hovers: pass.options.hover ? hoverTargets(doc) : new Set(),
    activeSvgs: new Set(),
    handlers: pass.only ? NO_HANDLERS : readOf?.() ?? NO_HANDLERS,
  };
  for (const [element, types] of context.handlers) if (hasAny(types, CLICKS)) addSvgsAround(element, context.activeSvgs);
  for (const link of doc.querySelectorAll("svg a")) addSvgsAround(link, context.activeSvgs);
  return {
    up: null, context, step: "", place: -1 - number, style: null, clip: context.view, rect: NO_RECT,
    exposed: true, inFront: context.modal === null,
    insideClicked: false, hasPointerCursor: false, isTextTaken: pass.only !== null, inSvg: false, pendingClick: -1,
    hasMarkers: false,
  };
};
const NO_RECT = { left: 0, top: 0, right: 0, bottom: 0, width: 0, height: 0 };
/**
 * @param {any} element
 * @param {Set<Element>} svgs
 */
const addSvgsAround = (element, svgs) => {
  for (let svg = element.ownerSVGElement; svg; svg = svg.ownerSVGElement) svgs.add(svg);
};

/**
 * @param {Pass} pass
 * @param {Document} doc
 * @param {string[]} path
 * @param {Point} origin
 * @param {string} [address] What the document adds to the structure of the page, see `addressShown`.
 */
const visitDocument = (pass, doc, path, origin, address = "") => {
  const root = doc.documentElement; // a script may have removed it
  if (!root) return;
  const position = rootPosition(pass, doc, path, origin);
  if (address && !pass.only) addPlace(pass, position, `=> ${address}`);
  visit(pass, root, root, `/${stepName(root, 1)}`, position);
};

// ---- whole passes ----

/**
 * The origin of this document in page coordinates; in a cross-origin frame, the caller passes it.
 * @param {SnapshotOptions} options
 * @returns {Point}
 */
const pageOrigin = (options) => options.origin ?? { x: window.scrollX, y: window.scrollY };

/**
 * Collect everything on the page.
 * @param {SnapshotOptions} options
 * @returns {Pass}
 */
const passOverPage = (options) =>
  withCaches(() => {
    const pass = newPass(options);
    visitDocument(pass, document, [], pageOrigin(options), window === window.top ? "" : addressShown(null, window));
    const counts = new Map();
    for (const candidate of pass.candidates) {
      const key = `${candidate.kind} ${candidate.value}\n${candidate.frame}\n${candidate.role}\n${candidate.name}`;
      candidate.nth = counts.get(key) || 0;
      counts.set(key, candidate.nth + 1);
    }
    if (window === window.top) markCovered(pass);
    return pass;
  });

/**
 * The candidates that `passOverPage` would find for one element; none if it is not exposed.
 * @param {SnapshotOptions} options
 * @param {Element} only
 * @returns {Candidate[]}
 */
const passOverElement = (options, only) =>
  withCaches(() => {
    const pass = newPass(options, only);
    const line = []; // the ancestors and the element, outermost first
    for (let node = pass.shown; node; node = parentThroughRoots(node)) line.unshift(node);
    let position = rootPosition(pass, document, [], pageOrigin(options));
    for (const node of line) {
      const doc = node.ownerDocument;
      if (node === doc.documentElement && doc !== document) {
        if (!position.exposed) break;
        const origin = originIn(doc.defaultView.frameElement, position.rect, position.context.origin);
        position = rootPosition(pass, doc, [], origin);
      }
      const entered = enter(pass, node, unclobbered(node), "", position);
      if (!entered) break;
      position = entered;
    }
    return pass.candidates;
  });
