// Provides roles and accessible names of elements: the part of WAI-ARIA 1.2 and AccName 1.2 for elements that people click.

/** @type {Record<string, string>} */
const INPUT_ROLES = {
  button: "button", submit: "button", reset: "button", image: "button", file: "button",
  checkbox: "checkbox", radio: "radio", range: "slider", number: "spinbutton", search: "searchbox",
};
/** @type {Record<string, string>} */
const TAG_ROLES = {
  button: "button", summary: "button", textarea: "textbox", h1: "heading", h2: "heading", h3: "heading",
  h4: "heading", h5: "heading", h6: "heading", img: "img", svg: "img", td: "cell", li: "listitem", nav: "navigation",
  main: "main", dialog: "dialog", option: "option", progress: "progressbar", meter: "meter", output: "status",
};
const FIELD_ROLES = new Set([
  "textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "slider", "spinbutton",
]);
/**
 * The role of an element, empty if it has none.
 * @param {Element} node
 * @returns {string}
 */
const roleOf = (node) => {
  const element = unclobbered(node);
  let explicit = element.getAttribute("role");
  if (explicit) [explicit] = explicit.trim().split(/\s+/);
  if (explicit && explicit !== "none" && explicit !== "presentation") return explicit;
  const tag = element.localName;
  if (tag === "a" || tag === "area") return element.hasAttribute("href") || element.hasAttribute("xlink:href") ? "link" : "";
  if (tag === "input") return INPUT_ROLES[element.type] || (element.type === "hidden" ? "" : "textbox");
  if (tag === "select") return element.multiple || element.size > 1 ? "listbox" : "combobox";
  if (tag === "th") return element.scope === "row" ? "rowheader" : "columnheader";
  if (hasEditable !== false && element.isContentEditable && !element.parentElement?.isContentEditable) return "textbox";
  return TAG_ROLES[tag] || "";
};

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
/**
 * The element itself, or for a form a proxy whose properties are not hidden by its fields.
 * @param {any} element
 * @returns {any}
 */
const unclobbered = (element) => {
  const tag = element.localName; // for a form this may be a field
  if (tag !== "form" && typeof tag !== "object") return element;
  return Object.prototype.toString.call(element) === "[object HTMLFormElement]" ? new Proxy(element, formReader) : element;
};
const documentTitle = /** @type {any} */ (Object.getOwnPropertyDescriptor(Document.prototype, "title")).get;

// Caches of one pass over the page; null outside of it.
/** @type {Map<Element, CSSStyleDeclaration> | null} */
let styles = null;
/** @type {Map<Element, string> | null} */
let names = null;
/** @type {Map<Element, boolean> | null} */
let visibles = null;
/** Whether any element of the page is editable; null: not known. @type {boolean | null} */
let hasEditable = null;
/**
 * Run `work` with the caches.
 * @template T
 * @param {() => T} work
 * @returns {T}
 */
const withCaches = (work) => {
  styles = new Map();
  names = new Map();
  visibles = new Map();
  hasEditable = innerScripts(window).next().done ? document.querySelector("[contenteditable]") !== null : null;
  try {
    return work();
  } finally {
    styles = names = visibles = hasEditable = null;
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
 * A text with whitespace collapsed, cut to `MAX_TEXT` characters, without half surrogate pairs.
 * @param {string} text
 * @returns {string}
 */
const squeeze = (text) => {
  const clean = LOOSE.test(text) ? text.replace(/\s+/g, " ").trim() : text;
  if (clean.length < MAX_TEXT) return clean.toWellFormed();
  return clean.slice(0, MAX_TEXT).replace(/[\uD800-\uDBFF]$/, "").toWellFormed();
};
const UNTEXTUAL = new Set(["script", "style", "noscript", "template", "select", "textarea"]);
const BLOCK = /^(block|flex|grid|table|list-item|table-cell|table-row|flow-root)$/;

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

/**
 * The text in an element. In a visible element, transparent content is skipped: a hidden tooltip keeps the text that it
 * showed last. An element that is not seen itself (a label that fades in) is named by all its content.
 * @param {any} node
 * @returns {string}
 */
const contentText = (node) => {
  const element = unclobbered(node);
  const only = element.firstChild;
  if (only?.nodeType === 3 && !only.nextSibling && !shadowOf(element)) return squeeze(only.data);
  let text = "";
  const walk = (/** @type {any} */ parent) => {
    for (let original = parent.firstChild; original; original = original.nextSibling) {
      if (text.length > MAX_TEXT) return;
      const { nodeType } = original;
      if (nodeType === 3) text += original.data;
      if (nodeType !== 1) continue;
      const child = unclobbered(original);
      if (UNTEXTUAL.has(child.localName)) continue;
      if (child.getAttribute("aria-hidden") === "true") continue;
      const { display } = styleOf(original);
      const isShown = display === "contents" || isSeen(original) || (!isSeen(node) && child.checkVisibility(VISIBLE_OR_TRANSPARENT));
      if (!isShown) continue;
      const space = BLOCK.test(display) || child.localName === "br" ? " " : "";
      const label = child.getAttribute("aria-label") || (child.localName === "img" ? child.alt : "");
      text += space;
      if (label) text += ` ${label} `;
      else if (child.localName === "svg") text += ` ${child.querySelector(":scope > title")?.textContent || ""} `;
      else walk(shadowOf(child) || child);
      text += space;
    }
  };
  walk((!element.firstChild && shadowOf(element)) || element);
  return squeeze(text);
};

/**
 * The accessible name of an element.
 * @param {any} node
 * @param {string} role
 * @returns {string}
 */
const nameOf = (node, role) => {
  let name = names?.get(node);
  if (name === undefined) {
    name = computeName(node, role);
    names?.set(node, name);
  }
  return name;
};
/**
 * @param {any} node
 * @param {string} role
 * @returns {string}
 */
const computeName = (node, role) => {
  const element = unclobbered(node);
  const ids = element.getAttribute("aria-labelledby");
  if (ids) {
    const root = element.getRootNode();
    const parts = ids.split(/\s+/).map((/** @type {string} */ id) => root.getElementById?.(id)).filter(Boolean);
    const text = squeeze(parts.map((/** @type {any} */ part) => part.getAttribute("aria-label") || part.textContent).join(" "));
    if (text) return text;
  }
  const label = squeeze(element.getAttribute("aria-label") || "");
  if (label) return label;
  const tag = element.localName;
  if (tag === "img" || tag === "area" || (tag === "input" && element.type === "image")) return squeeze(element.alt || element.title || "");
  if (tag === "svg") return squeeze(element.querySelector(":scope > title")?.textContent || "");
  if (tag === "input" && INPUT_ROLES[element.type] === "button") {
    return squeeze(element.value || element.title || { submit: "Submit", reset: "Reset" }[/** @type {"submit"} */ (element.type)] || "");
  }
  if (FIELD_ROLES.has(role)) {
    const labels = element.labels ? [...element.labels].map(contentText).join(" ") : "";
    return squeeze(labels || element.getAttribute("placeholder") || element.title || element.name || "");
  }
  return contentText(node) || squeeze(element.title || "");
};
