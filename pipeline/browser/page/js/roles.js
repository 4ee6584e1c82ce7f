// Provides `roleOf`, the role of an element, and `ariaOf`, its ARIA attributes, those of its internals included.

/** @type {Record<string, string>} */
const INPUT_ROLES = {
  button: "button", submit: "button", reset: "button", image: "button", file: "button",
  checkbox: "checkbox", radio: "radio", range: "slider", number: "spinbutton", search: "searchbox",
};
/** Types of fields that a list of suggestions makes a combobox. */
const SUGGESTING_TYPES = new Set(["text", "search", "email", "url", "tel"]);
/** @type {Record<string, string>} */
const TAG_ROLES = {
  button: "button", textarea: "textbox", h1: "heading", h2: "heading", h3: "heading",
  h4: "heading", h5: "heading", h6: "heading", svg: "img", td: "cell", nav: "navigation",
  main: "main", dialog: "dialog", option: "option", progress: "progressbar", meter: "meter", output: "status",
};
const FIELD_ROLES = new Set([
  "textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "slider", "spinbutton",
]);
/** The roles of WAI-ARIA that an attribute can give. Browsers ignore all other words. */
const ARIA_ROLES = new Set(
  ("alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox comment " +
    "complementary contentinfo definition deletion dialog document emphasis feed figure form generic grid gridcell group heading " +
    "img insertion link list listbox listitem log main mark marquee math menu menubar menuitem menuitemcheckbox menuitemradio " +
    "meter navigation none note option paragraph progressbar radio radiogroup region row rowgroup rowheader scrollbar search " +
    "searchbox sectionfooter sectionheader separator slider spinbutton status strong subscript suggestion superscript switch " +
    "tab table tablist tabpanel term textbox time timer toolbar tooltip tree treegrid treeitem").split(" "),
);
/** Other names of roles; those of DPUB-ARIA stand for the role that they refine. @type {Record<string, string>} */
const ROLE_SYNONYMS = {
  presentation: "none", image: "img", directory: "list",
  "doc-backlink": "link", "doc-biblioref": "link", "doc-glossref": "link", "doc-noteref": "link",
};
/** Attributes that every role has. An element with one of them is no mere decoration. */
const GLOBAL_ARIA =
  /^aria-(atomic|busy|controls|current|describedby|description|details|dropeffect|flowto|grabbed|keyshortcuts|label|labelledby|live|owns|relevant|roledescription)$/;

/**
 * Internals of custom elements: the semantics that they have without any attribute. A page and its frames share one map.
 * In a caller's page, those that were made before this script came are unknown.
 * @type {WeakMap<Element, ElementInternals>}
 */
const knownInternals = ofParent("knownInternals") ?? lasting(new WeakMap());
/**
 * The internals of an element, if it has any and they are known.
 * @param {any} element
 * @returns {any}
 */
const internalsOf = (element) => (element.localName.includes?.("-") ? knownInternals.get(element) : undefined);
/**
 * Whether an element may have a role and a name that this script cannot know: in a caller's page, a custom element that was
 * made before this script came.
 * @param {any} element
 */
const mayHaveUnknownInternals = (element) =>
  !window[KEY].guarded && element.localName.includes?.("-") && !knownInternals.has(element);

const toProperty = (/** @type {string} */ _, /** @type {string} */ letter) => `aria${letter.toUpperCase()}`;
/**
 * The value of an ARIA attribute, of the element or else of its internals.
 * @param {any} element
 * @param {string} name For example `aria-label`.
 * @returns {string | null}
 */
const ariaOf = (element, name) => {
  const value = element.getAttribute(name);
  return value !== null ? value : internalsOf(element)?.[name.replace(/^aria-(.)/, toProperty)] ?? null;
};
/** @param {any} element */
const isAriaHidden = (element) => ariaOf(element, "aria-hidden") === "true";

/**
 * Whether an element keeps its role although an attribute takes it away: it can be focused, or has a global attribute.
 * @param {any} element
 */
const keepsRole = (element) =>
  ((element.tabIndex >= 0 || element.hasAttribute("tabindex")) && !element.matches(":disabled")) ||
  element.getAttributeNames().some((/** @type {string} */ name) => GLOBAL_ARIA.test(name));
/**
 * The first valid role that an attribute, or else the internals, give an element; `none` if they take it away; null if they
 * say nothing.
 * @param {any} element
 * @returns {string | null}
 */
const explicitRole = (element) => {
  const attribute = element.getAttribute("role");
  const inner = internalsOf(element)?.role;
  if (!attribute && !inner) return null;
  for (const token of `${attribute ?? ""} ${inner ?? ""}`.toLowerCase().split(/\s+/)) {
    const role = Object.hasOwn(ROLE_SYNONYMS, token) ? ROLE_SYNONYMS[token] : token;
    if (role === "none" && keepsRole(element)) return null;
    if (ARIA_ROLES.has(role)) return role;
  }
  return null;
};
/**
 * The role of an element, empty if it has none.
 * @param {Element} node
 * @returns {string}
 */
const roleOf = (node) => {
  const element = unclobbered(node);
  const explicit = explicitRole(element);
  if (explicit !== null) return explicit === "none" || explicit === "generic" ? "" : explicit;
  const tag = element.localName;
  if (tag === "a" || tag === "area") return element.hasAttribute("href") || element.hasAttribute("xlink:href") ? "link" : "";
  if (tag === "input") {
    if (SUGGESTING_TYPES.has(element.type) && element.list) return "combobox";
    return INPUT_ROLES[element.type] || (element.type === "hidden" ? "" : "textbox");
  }
  if (tag === "select") return element.multiple || element.size > 1 ? "listbox" : "combobox";
  if (tag === "th") return element.scope === "row" ? "rowheader" : "columnheader";
  if (tag === "img") return isDecoration(element) ? "" : "img";
  if (tag === "li") return element.parentElement && explicitRole(element.parentElement) === "none" ? "" : "listitem";
  if (tag === "summary") return isOwnSummary(element) ? "button" : "";
  if (hasEditable !== false && element.isContentEditable && !element.parentElement?.isContentEditable) return "textbox";
  return Object.hasOwn(TAG_ROLES, tag) ? TAG_ROLES[tag] : "";
};
/** Whether an empty `alt` marks an image as decoration. @param {any} element */
const isDecoration = (element) =>
  element.getAttribute("alt") === "" && !element.hasAttribute("title") && !keepsRole(element);
/** Whether an element opens and closes its parent. @param {any} element */
const isOwnSummary = (element) =>
  element.parentElement?.localName === "details" && element.parentElement.querySelector(":scope > summary") === element;
