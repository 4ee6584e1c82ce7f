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
  const popup = ariaOf(element, "aria-haspopup");
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
  for (let box = parentOf(element), i = 0; box && i < MAX_BOXES; box = parentOf(box), i++) {
    if (unclobbered(box).querySelectorAll("input, select, textarea, [contenteditable]").length > 1) break;
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
    .filter((option) => !option.selected && !option.disabled && !option.parentElement.disabled && optionName(option))
    .slice(0, MAX_CHOICES);

/** Words on buttons that search. Scripts without spaces have no borders of words. */
const SEARCH_WORDS = new RegExp(
  "(^|\\P{L})(search|find|such[et]?n?|finden|recherche[rz]?|chercher|buscar|búsqueda|pesquisar|procurar|cerca|cercare" +
    "|zoek|zoeken|szukaj|hledat|vyhledat|sök|søk|søg|hae|haku|keresés|ara|căutare|поиск|найти|искать|пошук|αναζήτηση" +
    "|بحث|חיפוש|tìm)($|\\P{L})|검색|検索|搜索|搜尋|ค้นหา",
  "iu",
);
const BUTTONS = "button, input[type=submit], input[type=image], input[type=button], [role=button]";
/** @param {any} form @param {string} selector @returns {any[]} */
const inForm = (form, selector) => Array.from(Element.prototype.querySelectorAll.call(form, selector));
/**
 * Whether a form only misses the content of this field, and a button of it searches.
 * @param {any} form
 * @param {any} field
 */
const waitsForQuery = (form, field) =>
  field.required &&
  inForm(form, "input, select, textarea").every((one) => one === field || !one.matches(":invalid")) &&
  inForm(form, BUTTONS).some((button) => SEARCH_WORDS.test(nameOf(button, "button")));
/** @param {any} element */
const isSearchField = (element) => {
  const { form } = element;
  if (!form || formMethod.call(form) !== "get" || !isTextField(element)) return false;
  if (inForm(form, "input[type=password]").length > 0) return false;
  return element.type === "search" || POPULAR_SEARCH_NAMES.test(element.name) ||
    element.closest("[role=search], search") !== null || waitsForQuery(form, element);
};
/**
 * What makes a search form distinct: where it sends what is searched for, and the names of its fields. A form without
 * an address sends to the page that it is on, which is then no difference.
 * @param {any} element A field of the form.
 */
const searchFormOf = (element) => {
  const { form } = element;
  const hasAddress = (Element.prototype.getAttribute.call(form, "action") ?? "") !== "";
  const address = hasAddress ? formAction.call(form).replace(/[?#].*/su, "") : location.origin;
  const fields = inForm(form, "input, select, textarea").map((one) => one.name).filter((name) => name);
  return `${address}?${[...new Set(fields)].sort().join("&")}`;
};

const WORD = /\p{L}{4,}/gu;
/** @param {string} text @returns {string[]} */
const wordsOf = (text) => (text.match(WORD) ?? []).map((word) => word.toLowerCase());
/**
 * A word to search for: the first one that the title lacks of a visible heading, of one that is or holds a link before
 * others. Such headings name what the site has; the title names the site or the kind of page. Without one: a word of a
 * heading, of the title, or a letter.
 * @param {Document} doc
 */
const searchWord = (doc) => {
  /** @param {string} selector */
  const visible = (selector) => Array.from(Document.prototype.querySelectorAll.call(doc, selector)).filter(isSeen);
  const headings = visible("h1, h2, h3, h4, h5, h6");
  const linked = headings.filter((heading) => heading.closest("a[href]") ?? heading.querySelector("a[href]"));
  const title = wordsOf(documentTitle.call(doc));
  const words = [...linked, ...headings].flatMap((heading) => wordsOf(heading.textContent ?? ""));
  return words.find((word) => !title.includes(word)) ?? words[0] ?? title[0] ?? "a";
};

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
    return otherOptions(element).map((option) => ["select", optionName(option)]);
  }
  if (role === "checkbox" || role === "radio") return hasAny(types, [...CLICKS, "change", "input"]) ? [["click", ""]] : [];
  if (hasAny(types, CLICKS)) actions.push(["click", ""]);
  if (isTextField(element)) {
    if (options.submitSearch && isSearchField(element)) actions.push(["submit", searchWord(element.ownerDocument)]);
    // The browser itself shows the suggestions of a <datalist>.
    const suggests = (role === "combobox" && !element.list) || element.hasAttribute("aria-autocomplete") || hasPopup(element);
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
