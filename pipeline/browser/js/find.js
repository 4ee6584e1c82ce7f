// Where is a recorded element now, and which point of it takes the pointer?

const masked = (text) => text.replace(/\d+/g, "#");
const sameTarget = (action, candidate) => !action.target || candidate.target === action.target;

// The recorded element when it still is what and where it was; most often it is, and nothing else need be looked at.
const inPlace = (action, options) => {
  let doc = document;
  for (const xpath of action.frame) {
    const frame = doc && resolve(xpath, doc);
    try {
      doc = frame?.contentDocument;
    } catch {
      doc = null; // another origin
    }
  }
  const element = doc && resolve(action.xpath, doc);
  if (!element) return null;
  const alone = createLook({ ...options, hover: action.kind === "hover" }, element).ofAlone();
  const same = alone.some((c) =>
    c.kind === action.kind && c.role === action.role && c.name === action.name && sameTarget(action, c));
  return same ? [element, "exact"] : null;
};

const ladder = (action, options) => {
  const seen = createLook(options).whole();
  const frame = stringify(action.frame);
  const frames = seen.documents.map(stringify);
  const here = seen.candidates
    .map((candidate, i) => [candidate, seen.elements[i]])
    .filter(([c]) => c.kind === action.kind && frames[c.frame] === frame && c.role === action.role);
  const alike = here.filter(([c]) => c.name === action.name && sameTarget(action, c));
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
  while (top?.shadowRoot) {
    const deeper = top.shadowRoot.elementFromPoint(x, y);
    if (!deeper || deeper === top) break;
    top = deeper;
  }
  for (let node = top; node; node = node.parentNode || node.host) if (node === element) return true;
  return false;
};

const moved = []; // [box, scrollTop, scrollLeft before, and after] of what was scrolled to reach an element
const scrollTo = (element) => {
  const boxes = [];
  for (let node = element.parentNode; node; node = node.parentNode || node.host) {
    if (node.nodeType === 1) boxes.push([node, node.scrollTop, node.scrollLeft]);
  }
  element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  for (const [box, top, left] of boxes) {
    if (box.scrollTop !== top || box.scrollLeft !== left) moved.push([box, top, left, box.scrollTop, box.scrollLeft]);
  }
};
// Put back what was scrolled, unless it was moved on since.
const scrollBack = () => {
  for (const [box, top, left, movedTop, movedLeft] of moved.splice(0)) {
    if (box.scrollTop === movedTop && box.scrollLeft === movedLeft) box.scrollTo({ top, left, behavior: "instant" });
  }
};

const pointOf = (element) => {
  const image = element.localName === "area" ? imageOf(element) : null;
  scrollTo(image || element);
  const view = element.ownerDocument.defaultView;
  const screen = { left: 0, top: 0, right: view.innerWidth, bottom: view.innerHeight };
  let first = null;
  for (const rect of image ? [areaRect(element, image)] : element.getClientRects()) {
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
  const found = inPlace(action, options) ?? ladder(action, options);
  if (!found) return { rung: "" };
  const point = pointOf(found[0]);
  const newTab = action.kind === "click" && !point.covered && stayInTab(found[0]);
  return { rung: found[1], newTab, ...point };
};
