// What is an element's role and name? The part of WAI-ARIA 1.2 and AccName 1.2 that covers what people click.

const INPUT_ROLES = {
  button: "button", submit: "button", reset: "button", image: "button", file: "button",
  checkbox: "checkbox", radio: "radio", range: "slider", number: "spinbutton", search: "searchbox",
};
const TAG_ROLES = {
  button: "button", summary: "button", textarea: "textbox", h1: "heading", h2: "heading", h3: "heading",
  h4: "heading", h5: "heading", h6: "heading", img: "img", svg: "img", td: "cell", li: "listitem", nav: "navigation",
  main: "main", dialog: "dialog", option: "option", progress: "progressbar", meter: "meter", output: "status",
};
const FIELD_ROLES = new Set([
  "textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "slider", "spinbutton",
]);
const roleOf = (node) => {
  const element = plain(node);
  let explicit = element.getAttribute("role");
  if (explicit) [explicit] = explicit.trim().split(/\s+/);
  if (explicit && explicit !== "none" && explicit !== "presentation") return explicit;
  const tag = element.localName;
  if (tag === "a" || tag === "area") return element.hasAttribute("href") || element.hasAttribute("xlink:href") ? "link" : "";
  if (tag === "input") return INPUT_ROLES[element.type] || (element.type === "hidden" ? "" : "textbox");
  if (tag === "select") return element.multiple || element.size > 1 ? "listbox" : "combobox";
  if (tag === "th") return element.scope === "row" ? "rowheader" : "columnheader";
  if (editable !== false && element.isContentEditable && !element.parentElement?.isContentEditable) return "textbox";
  return TAG_ROLES[tag] || "";
};

// A form answers with its fields where they are named like its properties: an <input name=children> hides the form's
// children. Properties of forms are therefore read through the prototype.
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
const plain = (element) => {
  const tag = element.localName; // of a form it may be a field
  if (tag !== "form" && typeof tag !== "object") return element;
  return Object.prototype.toString.call(element) === "[object HTMLFormElement]" ? new Proxy(element, formReader) : element;
};
const documentTitle = Object.getOwnPropertyDescriptor(Document.prototype, "title").get;

// Computed styles, names, and what can be seen are read once per look; null when none is under way.
let styles = null;
let names = null;
let visibles = null;
let editable = null; // whether anything in the page is, as far as that is known
const styleOf = (element) => {
  if (!styles) return getComputedStyle(element);
  let style = styles.get(element);
  if (!style) styles.set(element, (style = getComputedStyle(element)));
  return style;
};

const MAX_TEXT = 300;
const LOOSE = /[^\S ]| {2}|^ | $/; // most texts are not, and need not be written anew
const squeeze = (text) => {
  const clean = LOOSE.test(text) ? text.replace(/\s+/g, " ").trim() : text;
  if (clean.length < MAX_TEXT) return clean.toWellFormed();
  return clean.slice(0, MAX_TEXT).replace(/[\uD800-\uDBFF]$/, "").toWellFormed();
};
const UNTEXTUAL = new Set(["script", "style", "noscript", "template", "select", "textarea"]);
const BLOCK = /^(block|flex|grid|table|list-item|table-cell|table-row|flow-root)$/;

const FULLY = { opacityProperty: true, visibilityProperty: true };
const BARELY = { visibilityProperty: true };
const isVisible = (node) => {
  let answer = visibles?.get(node);
  if (answer === undefined) {
    answer = plain(node).checkVisibility(FULLY);
    visibles?.set(node, answer);
  }
  return answer;
};

// Of what can be seen, what is transparent is not read: a tooltip that waits keeps the text that it showed last. What cannot
// be seen itself (a label that floats in) is named by all that it holds.
const contentText = (node) => {
  const element = plain(node);
  const only = element.firstChild;
  if (only?.nodeType === 3 && !only.nextSibling && !shadowOf(element)) return squeeze(only.data);
  let text = "";
  const walk = (parent) => {
    for (let original = parent.firstChild; original; original = original.nextSibling) {
      if (text.length > MAX_TEXT) return;
      const { nodeType } = original;
      if (nodeType === 3) text += original.data;
      if (nodeType !== 1) continue;
      const child = plain(original);
      if (UNTEXTUAL.has(child.localName)) continue;
      if (child.getAttribute("aria-hidden") === "true") continue;
      const { display } = styleOf(original);
      if (display !== "contents" && !isVisible(original) && (isVisible(node) || !child.checkVisibility(BARELY))) continue;
      const apart = BLOCK.test(display) || child.localName === "br" ? " " : "";
      const label = child.getAttribute("aria-label") || (child.localName === "img" ? child.alt : "");
      text += apart;
      if (label) text += ` ${label} `;
      else if (child.localName === "svg") text += ` ${child.querySelector(":scope > title")?.textContent || ""} `;
      else walk(shadowOf(child) || child);
      text += apart;
    }
  };
  walk((!element.firstChild && shadowOf(element)) || element);
  return squeeze(text);
};

const nameOf = (node, role) => {
  let name = names?.get(node);
  if (name === undefined) {
    name = readName(node, role);
    names?.set(node, name);
  }
  return name;
};
const readName = (node, role) => {
  const element = plain(node);
  const ids = element.getAttribute("aria-labelledby");
  if (ids) {
    const root = element.getRootNode();
    const parts = ids.split(/\s+/).map((id) => root.getElementById?.(id)).filter(Boolean);
    const text = squeeze(parts.map((part) => part.getAttribute("aria-label") || part.textContent).join(" "));
    if (text) return text;
  }
  const label = squeeze(element.getAttribute("aria-label") || "");
  if (label) return label;
  const tag = element.localName;
  if (tag === "img" || tag === "area" || (tag === "input" && element.type === "image")) return squeeze(element.alt || element.title || "");
  if (tag === "svg") return squeeze(element.querySelector(":scope > title")?.textContent || "");
  if (tag === "input" && INPUT_ROLES[element.type] === "button") {
    return squeeze(element.value || element.title || { submit: "Submit", reset: "Reset" }[element.type] || "");
  }
  if (FIELD_ROLES.has(role)) {
    const labels = element.labels ? [...element.labels].map(contentText).join(" ") : "";
    return squeeze(labels || element.getAttribute("placeholder") || element.title || element.name || "");
  }
  return contentText(node) || squeeze(element.title || "");
};
