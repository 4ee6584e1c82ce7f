// Provides rectangles, clipping, and the positions of image map areas.

/**
 * @param {Edges} a
 * @param {Edges} b
 * @returns {Edges}
 */
const intersect = (a, b) => ({
  left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
  right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom),
});
/**
 * Whether two rectangles overlap.
 * @param {Edges} rect
 * @param {Edges} clip
 */
const overlaps = ({ left, top, right, bottom }, clip) =>
  Math.min(right, clip.right) > Math.max(left, clip.left) && Math.min(bottom, clip.bottom) > Math.max(top, clip.top);
/**
 * A rectangle as a plain object; the properties of the browser's are those of its prototype.
 * @param {Rect} rect
 * @returns {Rect}
 */
const rectOf = ({ left, top, right, bottom, width, height }) => ({ left, top, right, bottom, width, height });
/** @param {Edges} rect */
const isEmpty = (rect) => rect.right - rect.left <= 0 || rect.bottom - rect.top <= 0;

/**
 * The rectangle in which the children of an element can be visible, also after scrolling. It starts as the whole page; in a
 * box that scrolls, content below the end of the page can be visible as well.
 * @param {any} element
 * @param {CSSStyleDeclaration} style
 * @param {Edges} rect
 * @param {Edges} clip
 * @returns {Edges}
 */
const childClip = (element, style, rect, clip) => {
  if (element.localName === "body" || element.localName === "html") return clip;
  const { overflowX: x, overflowY: y } = style;
  if (x === "visible" && y === "visible") return clip;
  const visible = intersect(rect, clip);
  if (isEmpty(visible)) return visible;
  const bounds = { ...clip };
  const cuts = (/** @type {string} */ value) => value === "hidden" || value === "clip";
  const scrolls = (/** @type {string} */ value) => value === "auto" || value === "scroll";
  if (cuts(x)) [bounds.left, bounds.right] = [visible.left, visible.right];
  if (cuts(y)) [bounds.top, bounds.bottom] = [visible.top, visible.bottom];
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

/**
 * The bounding rectangle of an element whose content the browser skips until it comes near the window
 * (`content-visibility: auto`): with the content, since the page grows by it. Null if the content is not skipped.
 * @param {any} element
 * @param {CSSStyleDeclaration} style
 * @param {Rect} rect
 * @returns {Rect | null}
 */
const skippedRect = (element, style, rect) => {
  const child = element.firstElementChild;
  if ((!child && rect.height > 0) || style.contentVisibility !== "auto") return null;
  if (child?.checkVisibility({ contentVisibilityAuto: true })) return null;
  const text = document.createRange();
  text.selectNodeContents(element);
  // Asking for the boxes of elements, not for that of a range around them, makes the browser lay them out.
  const parts = child ? [...element.children] : [text];
  const bottom = Math.max(rect.bottom, ...parts.map((part) => part.getBoundingClientRect().bottom));
  return { ...rectOf(rect), bottom, height: bottom - rect.top };
};

// ---- image maps (HTML, section "image map processing model") ----

/**
 * The areas of an image.
 * @param {any} image
 * @returns {any[]}
 */
const areasOf = (image) => {
  const name = image.useMap.slice(image.useMap.indexOf("#") + 1);
  const map = name && [...image.ownerDocument.querySelectorAll("map[name]")].find((one) => one.name === name);
  return map ? [...map.querySelectorAll("area")] : [];
};
/**
 * The image that an area is on.
 * @param {any} area
 * @returns {any}
 */
const imageOf = (area) =>
  [...area.ownerDocument.querySelectorAll("img[usemap]")].find((image) => areasOf(image).includes(area));
/**
 * The bounding rectangle of an area, in its window.
 * @param {any} area
 * @param {any} image
 * @returns {Rect}
 */
const areaRect = (area, image) => {
  const box = image.getBoundingClientRect();
  const coords = (area.getAttribute("coords") || "").split(/[\s,;]+/).map((/** @type {string} */ n) => parseFloat(n) || 0);
  const [a = 0, b = 0, c = 0, d = 0, ...more] = coords;
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
  const shifted = { left: rect.left + x, top: rect.top + y, right: rect.right + x, bottom: rect.bottom + y };
  return { ...shifted, width: shifted.right - shifted.left, height: shifted.bottom - shifted.top };
};
