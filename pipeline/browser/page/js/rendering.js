// Provides what an element is, as the browser draws it: access past clobbered properties, its style, whether it is seen,
// and texts as they are compared.

// DOM clobbering: a form has its fields as properties, so that <input name=children> hides the form's children. Properties
// of forms are therefore read through the prototype.
/** @type {ProxyHandler<any>} */
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
/** @type {WeakSet<any>} */
const formProxies = lasting(new WeakSet());
/**
 * The element itself, or for a form a proxy whose properties are not hidden by its fields.
 * @param {any} element
 * @returns {any}
 */
const unclobbered = (element) => {
  const tag = element.localName; // for a form this may be a field
  if (tag !== "form" && typeof tag !== "object") return element;
  if (formProxies.has(element) || Object.prototype.toString.call(element) !== "[object HTMLFormElement]") return element;
  const proxy = new Proxy(element, formReader);
  formProxies.add(proxy);
  return proxy;
};
/** The element around one, read past the fields of a form. @param {any} node */
const parentOf = (node) => unclobbered(node).parentElement;
/** The node around one, and around a shadow root its host. @param {any} node */
const parentOrHost = (node) => unclobbered(node).parentNode || unclobbered(node).host;
const documentTitle = /** @type {any} */ (Object.getOwnPropertyDescriptor(Document.prototype, "title")).get;

// Caches of one pass over the page; null outside of it.
/** @type {Map<Element, CSSStyleDeclaration> | null} */
let styles = null;
/** @type {Map<Element, string> | null} */
let names = null;
/** @type {Map<Element, boolean> | null} */
let visibles = null;
/** See `headingsOf`. @type {Map<Element, [Element, Element | null][] | null> | null} */
let headingsByBox = null;
/** Whether any element of the page is editable; null: not known. @type {boolean | null} */
let hasEditable = null;
/**
 * Run `work` with the caches.
 * @template T
 * @param {() => T} work
 * @returns {T}
 */
const withCaches = (work) => {
  if (styles) return work(); // the caches of the work around it
  styles = new Map();
  ownedByRoot = new WeakMap();
  generating = new WeakMap();
  labelsByRoot = new WeakMap();
  names = new Map();
  visibles = new Map();
  headingsByBox = new Map();
  hasEditable = innerScripts(window).next().done ? document.querySelector("[contenteditable]") !== null : null;
  try {
    return work();
  } finally {
    styles = names = visibles = headingsByBox = hasEditable = generating = ownedByRoot = labelsByRoot = null;
  }
};
/** @param {any} element */
const styleOf = (element) => {
  if (!styles) return getComputedStyle(element);
  let style = styles.get(element);
  if (!style) styles.set(element, (style = getComputedStyle(element)));
  return style;
};

const MAX_TEXT = 300;
const LOOSE = /[^\S ]| {2}|^ | $/; // most texts are squeezed already, and need no replacement
/**
 * A text with whitespace collapsed, cut to `limit` characters, without half surrogate pairs.
 * @param {string} text
 * @param {number} limit
 * @returns {string}
 */
const squeeze = (text, limit = MAX_TEXT) => {
  const clean = LOOSE.test(text) ? text.replace(/\s+/g, " ").trim() : text;
  if (clean.length < limit) return clean.toWellFormed();
  return clean.slice(0, limit).replace(/[\uD800-\uDBFF]$/, "").toWellFormed();
};

const VISIBLE = { opacityProperty: true, visibilityProperty: true };
const VISIBLE_OR_TRANSPARENT = { visibilityProperty: true };
// Black on white with this opacity has a contrast of 1.12 to 1, which a person does not see. Effects end at such values by
// chance (a ripple that is interrupted), so what they draw is in one snapshot and not in the next.
const SEEN_OPACITY = 0.05;
/**
 * Whether an element is drawn too faintly to be seen, on its own: elements around it may be fainter.
 * @param {CSSStyleDeclaration} style
 */
const isFaint = (style) => Number(style.opacity) < SEEN_OPACITY;
/**
 * Whether an element is visible, except for faint elements around it.
 * @param {any} node
 */
const isVisible = (node) => {
  let answer = visibles?.get(node);
  if (answer === undefined) {
    answer = /** @type {boolean} */ (unclobbered(node).checkVisibility(VISIBLE));
    visibles?.set(node, answer);
  }
  return answer;
};

/**
 * Whether a person could see an element, if nothing around it is faint.
 * @param {any} node
 */
const isSeen = (node) => isVisible(node) && !isFaint(styleOf(node));
