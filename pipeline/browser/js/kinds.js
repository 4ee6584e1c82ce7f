// What can be done with an element, besides looking at it?

const PROBES = { number: "1", tel: "1", email: "a@example.com", url: "https://example.com/" };
const TEXT_TYPES = new Set(["text", "search", "email", "url", "tel", "number"]);
const POPULAR_SEARCH_NAMES = /^(q|s|k|query|search|keywords?|term|find)$/i;
// Beyond a quarter of the usual viewport, an element that is listened to is a container whose parts are meant.
const MAX_AREA = 256_000;

const hasAny = (types, wanted) => wanted.some((type) => types.has(type));
const isTextField = (element) => {
  const tag = element.localName;
  if (tag === "input") return TEXT_TYPES.has(element.type) && !element.readOnly;
  return tag === "textarea" ? !element.readOnly : element.isContentEditable;
};
const opensSomething = (element) => {
  const popup = element.getAttribute("aria-haspopup");
  return popup !== null && popup !== "false";
};

// Types that are listened to at a field, at its labels, at the form around it, and at boxes that are about this field alone.
const MAX_BOXES = 4;
const typesAround = (element, handlers) => {
  const around = [element, ...(element.labels || []), element.form, element.closest("form, fieldset")];
  for (let box = element.parentElement, i = 0; box && i < MAX_BOXES; box = box.parentElement, i++) {
    if (box.querySelectorAll("input, select, textarea, [contenteditable]").length > 1) break;
    around.push(box);
  }
  const types = new Set();
  for (const one of around) for (const type of (one && handlers.get(one)) || []) types.add(type);
  return types;
};

// Where choosing does something, every choice may do another thing; of a long list, the first ones stand for all.
const MAX_CHOICES = 6;
const otherOptions = (select) =>
  Array.from(select.options)
    .filter((option) => !option.selected && !option.disabled && !option.parentElement.disabled && option.label.trim())
    .slice(0, MAX_CHOICES);

const isSearchField = (element) =>
  element.form && formMethod.call(element.form) === "get" && isTextField(element) &&
  (element.type === "search" || POPULAR_SEARCH_NAMES.test(element.name) || element.closest("[role=search], search") !== null);
const searchWord = () => documentTitle.call(document).match(/\p{L}{4,}/u)?.[0].toLowerCase() ?? "a";

// [kind, value] of what can be done with a field.
const fieldActions = (element, role, types, options) => {
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
    const suggests = role === "combobox" || element.hasAttribute("aria-autocomplete") || opensSomething(element);
    // The key that opens a combobox by the ARIA practices.
    if (suggests && hasAny(types, KEYS)) actions.push(["press", "ArrowDown"]);
    if (suggests || hasAny(types, TYPING)) actions.push(["input", PROBES[element.type] || "a"]);
    else if (hasAny(types, FOCUSING)) actions.push(["focus", ""]);
    if (hasAny(types, LEAVES_FOCUS)) actions.push(["focus", "away"]);
    return actions;
  }
  if (role === "combobox" && actions.length === 0) actions.push(["click", ""]);
  if (hasAny(types, KEYS) && element.tabIndex >= 0) actions.push(["press", "ArrowDown"]);
  return actions;
};

// [kind, value] of what only listeners tell can be done with an element that is no field. `clicked`: it is clicked anyway.
const listenedActions = (element, types, clicked) => {
  const actions = [];
  if (types.has("dblclick")) actions.push(["dblclick", ""]);
  if (hasAny(types, ["contextmenu", "auxclick"])) actions.push(["contextmenu", ""]);
  if (clicked || element.tabIndex < 0) return actions;
  if (hasAny(types, KEYS)) for (const key of ["Enter", "Space", "ArrowDown"]) actions.push(["press", key]);
  else if (hasAny(types, FOCUSING)) actions.push(["focus", ""]);
  else if (hasAny(types, LEAVES_FOCUS)) actions.push(["focus", "away"]);
  return actions;
};
