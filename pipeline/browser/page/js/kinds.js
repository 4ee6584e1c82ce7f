// Provides the kinds of actions that elements allow besides a click.

/** Text to type, by type of the field. @type {Record<string, string>} */
const PROBES = { number: "1", tel: "1", email: "a@example.com", url: "https://example.com/" };
const TEXT_TYPES = new Set(["text", "search", "email", "url", "tel", "number"]);
const POPULAR_SEARCH_NAMES = /^(q|s|k|query|search|keywords?|term|find)$/i;
// An element with listeners that is larger than a quarter of the usual viewport is a container, and its parts are meant.
const MAX_LISTENER_AREA = 256_000;

/**
 * @param {Set<string>} types
 * @param {string[]} wanted
 */
const hasAny = (types, wanted) => wanted.some((type) => types.has(type));
/** @param {any} element */
const isTextField = (element) => {
  const tag = element.localName;
  if (tag === "input") return TEXT_TYPES.has(element.type) && !element.readOnly;
  return tag === "textarea" ? !element.readOnly : element.isContentEditable;
};
/** @param {Element} element */
const hasPopup = (element) => {
  const popup = element.getAttribute("aria-haspopup");
  return popup !== null && popup !== "false";
};

const MAX_BOXES = 4;
/**
 * Event types that are handled at a field, its labels, its form, and at boxes that contain no other field.
 * @param {any} element
 * @param {Handlers} handlers
 * @returns {Set<string>}
 */
const typesAround = (element, handlers) => {
  const related = [element, ...(element.labels || []), element.form, element.closest("form, fieldset")];
  for (let box = element.parentElement, i = 0; box && i < MAX_BOXES; box = box.parentElement, i++) {
    if (box.querySelectorAll("input, select, textarea, [contenteditable]").length > 1) break;
    related.push(box);
  }
  const types = new Set();
  for (const one of related) for (const type of (one && handlers.get(one)) || []) types.add(type);
  return types;
};

const MAX_CHOICES = 6;
/**
 * The first options of a list that are not selected. Each may have another effect; the first ones represent a long list.
 * @param {any} select
 * @returns {HTMLOptionElement[]}
 */
const otherOptions = (select) =>
  Array.from(select.options)
    .filter((option) => !option.selected && !option.disabled && !option.parentElement.disabled && option.label.trim())
    .slice(0, MAX_CHOICES);

/** @param {any} element */
const isSearchField = (element) =>
  element.form && formMethod.call(element.form) === "get" && isTextField(element) &&
  (element.type === "search" || POPULAR_SEARCH_NAMES.test(element.name) || element.closest("[role=search], search") !== null);
/** A word of the page's title to search for. */
const searchWord = () => documentTitle.call(document).match(/\p{L}{4,}/u)?.[0].toLowerCase() ?? "a";

/**
 * Actions on a field.
 * @param {any} element
 * @param {string} role
 * @param {Set<string>} types Event types that are handled around it.
 * @param {SnapshotOptions} options
 * @returns {ActionKind[]}
 */
const fieldActions = (element, role, types, options) => {
  /** @type {ActionKind[]} */
  const actions = [];
  const tag = element.localName;
  if (tag === "select") {
    if (element.multiple || !hasAny(types, ["change", "input"])) return [];
    return otherOptions(element).map((option) => ["select", squeeze(option.label)]);
  }
  if (role === "checkbox" || role === "radio") return hasAny(types, [...CLICKS, "change", "input"]) ? [["click", ""]] : [];
  if (hasAny(types, CLICKS)) actions.push(["click", ""]);
  if (isTextField(element)) {
    if (options.submitSearch && isSearchField(element)) actions.push(["submit", searchWord()]);
    const suggests = role === "combobox" || element.hasAttribute("aria-autocomplete") || hasPopup(element);
    // The key that opens a combobox by the ARIA Authoring Practices.
    if (suggests && hasAny(types, KEYS)) actions.push(["press", "ArrowDown"]);
    if (suggests || hasAny(types, TYPING)) actions.push(["input", PROBES[element.type] || "a"]);
    else if (hasAny(types, FOCUSES)) actions.push(["focus", ""]);
    if (hasAny(types, FOCUS_LEAVES)) actions.push(["focus", "away"]);
    return actions;
  }
  if (role === "combobox" && actions.length === 0) actions.push(["click", ""]);
  if (hasAny(types, KEYS) && element.tabIndex >= 0) actions.push(["press", "ArrowDown"]);
  return actions;
};

/**
 * Actions on an element that is no field, which only its listeners show.
 * @param {any} element
 * @param {Set<string>} types Event types that are handled at it.
 * @param {boolean} isClicked Whether a click is an action on it as well.
 * @returns {ActionKind[]}
 */
const listenerActions = (element, types, isClicked) => {
  /** @type {ActionKind[]} */
  const actions = [];
  if (types.has("dblclick")) actions.push(["dblclick", ""]);
  if (hasAny(types, ["contextmenu", "auxclick"])) actions.push(["contextmenu", ""]);
  if (isClicked || element.tabIndex < 0) return actions;
  if (hasAny(types, KEYS)) for (const key of ["Enter", "Space", "ArrowDown"]) actions.push(["press", key]);
  else if (hasAny(types, FOCUSES)) actions.push(["focus", ""]);
  else if (hasAny(types, FOCUS_LEAVES)) actions.push(["focus", "away"]);
  return actions;
};
