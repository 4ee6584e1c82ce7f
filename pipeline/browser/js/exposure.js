// Where can a box be seen?

const NEVER = new Set([
  "script", "style", "noscript", "template", "meta", "link", "base", "title", "head", "source", "track", "param",
  "br", "wbr", "datalist", "map",
]);
const LEAVES = new Set(["svg", "select", "canvas", "video", "audio", "object", "embed", "textarea"]);
const SPEAKING = new Set(["heading", "columnheader", "rowheader", "cell", "listitem", "status"]);
const MAX_EXPOSED = 20_000; // elements of one look; a page with more is cut there
const intersect = (a, b) => ({
  left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
  right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom),
});
const shares = ({ left, top, right, bottom }, clip) =>
  Math.min(right, clip.right) > Math.max(left, clip.left) && Math.min(bottom, clip.bottom) > Math.max(top, clip.top);
const isEmpty = (rect) => rect.right - rect.left <= 0 || rect.bottom - rect.top <= 0;

const XHTML = "http://www.w3.org/1999/xhtml";
const stepName = (element, index) =>
  element.namespaceURI === XHTML ? `${element.localName}[${index}]` : `*[name()="${element.nodeName}"][${index}]`;

// The rectangle outside of which the children of an element cannot be seen, not even by scrolling. It begins as the page;
// in a box that scrolls, what lies below the end of the page can be seen as well.
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

// The dialog that everything else of a document is behind. One that browsers know as modal, or one that says so of itself
// (`aria-modal`) and that a pointer finds on top: where its own middle is, and at the middle and the corners of the window
// nothing but the dialog or a backdrop that covers the window.
const AT_EDGE = 5; // CSS pixels from the edges of the window
const coversWindow = (element) => {
  const view = element.ownerDocument.defaultView;
  const { left, top, right, bottom } = element.getBoundingClientRect();
  const { position } = getComputedStyle(element);
  return (
    (position === "fixed" || position === "absolute") &&
    left <= 0 && top <= 0 && right >= view.innerWidth && bottom >= view.innerHeight
  );
};
const cornersOf = ({ innerWidth: width, innerHeight: height }) =>
  [[AT_EDGE, AT_EDGE], [width - AT_EDGE, AT_EDGE], [AT_EDGE, height - AT_EDGE], [width - AT_EDGE, height - AT_EDGE]];
const modalOf = (doc) => {
  const known = doc.querySelectorAll(":modal");
  if (known.length) return known[known.length - 1];
  const { innerWidth: width, innerHeight: height } = doc.defaultView;
  const screen = { left: 0, top: 0, right: width, bottom: height };
  const isOver = (dialog) => {
    const box = intersect(dialog.getBoundingClientRect(), screen);
    if (isEmpty(box) || dialog.closest("[inert], [aria-hidden=true]")) return false;
    if (!dialog.checkVisibility(FULLY)) return false;
    if (!dialog.contains(doc.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2))) return false;
    return [[width / 2, height / 2], ...cornersOf(doc.defaultView)].every(([x, y]) => {
      const top = doc.elementFromPoint(x, y);
      return top !== null && (dialog.contains(top) || coversWindow(top));
    });
  };
  const claimed = [...doc.querySelectorAll('[role=dialog][aria-modal="true"], [role=alertdialog][aria-modal="true"]')];
  return claimed.reverse().find(isOver) ?? null;
};

// What takes the pointer from the whole page without saying so: the backdrop of a tour, of an invitation, of a drawer, of a
// dialog made of boxes. It is blank in two corners of the window at least: a drawer stands in the others.
const shieldOf = (doc) => {
  const tops = cornersOf(doc.defaultView).map(([x, y]) => doc.elementFromPoint(x, y));
  return tops.find((top) => top && tops.filter((other) => other === top).length >= 2 && coversWindow(top)) ?? null;
};

const pathFromRoot = (element) => {
  let path = "";
  for (let node = element; node?.nodeType === 1; node = node.parentNode) {
    let index = 1;
    for (let other = node.previousElementSibling; other; other = other.previousElementSibling) {
      if (other.nodeName === node.nodeName) index += 1;
    }
    path = `/${stepName(node, index)}${path}`;
  }
  return path;
};

// Image maps (HTML, section "image map processing model"): which areas an image has, which image an area is on, and where.
const areasOf = (image) => {
  const name = image.useMap.slice(image.useMap.indexOf("#") + 1);
  const map = name && [...image.ownerDocument.querySelectorAll("map[name]")].find((one) => one.name === name);
  return map ? [...map.querySelectorAll("area")] : [];
};
const imageOf = (area) =>
  [...area.ownerDocument.querySelectorAll("img[usemap]")].find((image) => areasOf(image).includes(area));
const areaRect = (area, image) => {
  const box = image.getBoundingClientRect();
  const [a = 0, b = 0, c = 0, d = 0, ...more] = (area.getAttribute("coords") || "").split(/[\s,;]+/).map((n) => parseFloat(n) || 0);
  let rect = { left: 0, top: 0, right: box.width, bottom: box.height };
  if (/^rect/.test(area.shape || "rect")) {
    rect = { left: Math.min(a, c), top: Math.min(b, d), right: Math.max(a, c), bottom: Math.max(b, d) };
  } else if (/^circ/.test(area.shape)) rect = { left: a - c, top: b - c, right: a + c, bottom: b + c };
  else if (/^poly/.test(area.shape)) {
    const all = [a, b, c, d, ...more];
    const [xs, ys] = [0, 1].map((rest) => all.filter((_, i) => i % 2 === rest));
    rect = { left: Math.min(...xs), top: Math.min(...ys), right: Math.max(...xs), bottom: Math.max(...ys) };
  }
  const { paddingLeft, paddingTop } = getComputedStyle(image);
  const x = box.left + image.clientLeft + parseFloat(paddingLeft);
  const y = box.top + image.clientTop + parseFloat(paddingTop);
  const moved = { left: rect.left + x, top: rect.top + y, right: rect.right + x, bottom: rect.bottom + y };
  return { ...moved, width: moved.right - moved.left, height: moved.bottom - moved.top };
};

// The element that a full XPath names, through shadow roots; null when there is none.
const resolve = (xpath, doc) => {
  let parent = doc;
  for (const [i, hop] of xpath.split(" >>> ").entries()) {
    if (i > 0) parent = parent && shadowOf(parent);
    for (const step of hop.split("/").slice(1)) {
      const [, foreign, local, index] = /^(?:\*\[name\(\)="(.*)"\]|([^[]+))\[(\d+)\]$/.exec(step) || [];
      if (!parent || !index) return null;
      let left = Number(index);
      let child = plain(parent).firstElementChild;
      for (; child; child = plain(child).nextElementSibling) {
        const element = plain(child);
        const named = element.namespaceURI === XHTML ? element.localName === local : element.nodeName === foreign;
        if (named && --left === 0) break;
      }
      parent = child;
    }
  }
  return parent;
};
