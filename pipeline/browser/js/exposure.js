// Where can a box be seen?

const NEVER = new Set([
  "script", "style", "noscript", "template", "meta", "link", "base", "title", "head", "source", "track", "param",
  "br", "wbr", "datalist", "map",
]);
const LEAVES = new Set(["svg", "select", "canvas", "video", "audio", "object", "embed", "textarea"]);
const SPEAKING = new Set(["heading", "columnheader", "rowheader", "cell", "listitem", "status"]);
const MAX_EXPOSED = 20_000; // elements of one look; a page with more is cut there
const EVERYWHERE = { left: -1e9, top: -1e9, right: 1e9, bottom: 1e9 };
const intersect = (a, b) => ({
  left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
  right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom),
});
const shares = ({ left, top, right, bottom }, a, b) =>
  Math.min(right, a.right, b.right) > Math.max(left, a.left, b.left) &&
  Math.min(bottom, a.bottom, b.bottom) > Math.max(top, a.top, b.top);
const isEmpty = (rect) => rect.right - rect.left <= 0 || rect.bottom - rect.top <= 0;

const XHTML = "http://www.w3.org/1999/xhtml";
const stepName = (element, index) =>
  element.namespaceURI === XHTML ? `${element.localName}[${index}]` : `*[name()="${element.nodeName}"][${index}]`;

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

// The element that a full XPath names, through shadow roots; null when there is none.
const resolve = (xpath, doc) => {
  let parent = doc;
  for (const [i, hop] of xpath.split(" >>> ").entries()) {
    if (i > 0) parent = parent.shadowRoot;
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
