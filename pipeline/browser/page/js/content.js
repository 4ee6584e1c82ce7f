// Provides `textIn` and `contentText`: the text in an element, visible or as a part of a name, with everything that stands for
// text: alternatives, labels and values of the elements inside, generated content, slots, and elements that are owned.

/**
 * How a text is collected.
 * @typedef {object} Collecting
 * @property {any} root The element whose text it is.
 * @property {string} role Its role. Inside of an element that has one, fields stand for their values, and widgets for nothing.
 * @property {boolean} isName Whether it is a name, which includes generated content; visible text does not.
 * @property {boolean} isReferenced Whether a reference led here: it is followed no further.
 * @property {boolean} includesHidden Whether hidden content counts, because the element is hidden itself.
 * @property {boolean} includesSigns Whether generated content without letters counts, because there is no other text.
 * @property {number} limit Length of the text.
 * @property {any} control The field that is being named, which is no part of its own name.
 * @property {Set<any> | null} visited Elements that were reached by references, if any.
 */

const UNTEXTUAL = new Set(["script", "style", "noscript", "template", "datalist"]);
const UNNAMING_SVG = new Set(["title", "desc", "metadata", "defs", "symbol"]);
const BLOCK = /^(block|flex|grid|table|list-item|table-cell|table-row|flow-root|inline-block|inline-flex|inline-grid|inline-table)$/;
/** Widgets whose parts have names of their own, and are no part of the name around them. */
const NAMED_APART = new Set([
  "menu", "menubar", "tree", "treegrid", "grid", "tablist", "toolbar", "radiogroup", "dialog", "alertdialog",
]);
const ITEM = /^(treeitem|menuitem)/; // their groups hold the items below them
const SVG = "http://www.w3.org/2000/svg";
const MAX_MASKED = 20; // characters that stand for a password

// ---- generated content ----

const PICTURE = /url\("(?:[^"\\]|\\[^])*"\)/g;
const GENERATED = /"((?:[^"\\]|\\[^])*)"|\/|[\w-]+\((?:[^()"]|"(?:[^"\\]|\\[^])*"|\([^()]*\))*\)/g;
const ESCAPED = /\\(?:([0-9a-f]{1,6}) ?|([^]))/gi;
/** Characters that only an icon font draws. */
const PRIVATE_USE = /\p{Co}/gu;
const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;
/**
 * The text of a computed `content`: its alternative, or its strings.
 * @param {string} content
 */
const generatedText = (content) => {
  let text = "";
  for (const [part, string] of content.replace(PICTURE, "").matchAll(GENERATED)) {
    if (part === "/") text = ""; // what follows is the alternative
    else if (string !== undefined) {
      text += string.replace(ESCAPED, (_, code, character) => (code ? String.fromCodePoint(Math.min(parseInt(code, 16), 0x10ffff)) : character));
    }
  }
  return text.replace(PRIVATE_USE, "");
};
/** What icon fonts and empty boxes need. */
const NO_TEXT = /^(?:none|normal|["\s/]*)$/;
const MAX_RULES = 300; // to read; asking for each pseudo-element takes as long as reading this many
/** Whether a document has a rule that may generate text. @type {WeakMap<Document, boolean> | null} */
let generating = null;
/**
 * Whether a rule of a document, or of a shadow root in it, may generate text. Sheets of other origins cannot be read.
 * @param {any} doc
 * @returns {boolean}
 */
const mayGenerate = (doc) => {
  const known = generating?.get(doc);
  if (known !== undefined) return known;
  const roots = [doc, ...(doc === document ? shadowRoots() : doc.defaultView?.[KEY]?.shadowRoots() ?? [])];
  let left = MAX_RULES;
  const isText = (/** @type {any} */ rule) =>
    left-- <= 0 || !NO_TEXT.test((rule.style?.content ?? "").replace(PRIVATE_USE, "")) ||
    hasText(rule.cssRules) || hasText(rule.styleSheet?.cssRules);
  const hasText = (/** @type {any} */ rules) => rules?.length > 0 && Array.from(rules).some(isText);
  let answer = true;
  try {
    answer = roots.flatMap((root) => [...root.styleSheets, ...root.adoptedStyleSheets]).some((sheet) => hasText(sheet.cssRules)) ||
      doc.getAnimations().some((/** @type {any} */ animation) => animation.effect?.pseudoElement);
  } catch {
    // a sheet of another origin
  }
  generating?.set(doc, answer);
  return answer;
};
/**
 * The text of a pseudo-element, with the spaces that its box makes. Signs beside a text (a plus that becomes a minus, an
 * arrow, a bullet) show what state the element is in, and it is found again by the same name in each of them.
 * @param {any} node
 * @param {"::before" | "::after"} part
 * @param {boolean} includesSigns
 */
const pseudoText = (node, part, includesSigns) => {
  const style = getComputedStyle(node, part);
  const { content } = style;
  if (content === "none" || content === "normal") return "";
  const text = generatedText(content);
  if (!text || !(includesSigns || LETTER_OR_DIGIT.test(text))) return "";
  if (style.display === "none" || style.visibility !== "visible" || isFaint(style)) return "";
  return BLOCK.test(style.display) ? ` ${text} ` : text;
};

// ---- text in an element ----

/**
 * Whether an element has no box of its own but its children may be seen.
 * @param {any} node
 */
const isContents = (node) => styleOf(node).display === "contents";
/**
 * Whether an element is hidden from everyone; a transparent one is not.
 * @param {any} node
 * @param {any} element The node, unclobbered.
 */
const isHidden = (node, element) =>
  isAriaHidden(element) || (!element.checkVisibility(VISIBLE_OR_TRANSPARENT) && !isContents(node));
/**
 * The nodes that are drawn in an element: of its shadow root, of the elements assigned to it, or its own. Of what is closed
 * only the summary is.
 * @param {any} node
 * @param {any} element The node, unclobbered.
 * @returns {Iterable<any>}
 */
const drawnNodes = (node, element) => {
  const shadow = shadowOf(element);
  if (shadow) return shadow.childNodes;
  if (element.localName === "slot") {
    const assigned = element.assignedNodes({ flatten: true });
    if (assigned.length) return assigned;
  }
  if (element.localName !== "details" || element.open) return element.childNodes;
  const summary = element.querySelector(":scope > summary");
  return summary ? [summary] : [];
};
/** @typedef {{ byOwner: Map<any, Set<any>>, all: Set<any> }} Owned Elements that `aria-owns` moves elsewhere. */
/** Owned elements by root. Most pages have none. @type {WeakMap<any, Owned> | null} */
let ownedByRoot = null;
/**
 * The elements that other elements of the same root own.
 * @param {any} root
 * @returns {Owned}
 */
const ownedIn = (root) => {
  let found = ownedByRoot?.get(root);
  if (!found) {
    found = { byOwner: new Map(), all: new Set() };
    for (const owner of root.querySelectorAll?.("[aria-owns]") ?? []) {
      const ids = owner.getAttribute("aria-owns").trim().split(/\s+/);
      const nodes = ids.map((/** @type {string} */ id) => root.getElementById?.(id)).filter(Boolean);
      found.byOwner.set(owner, new Set(nodes));
      for (const node of nodes) found.all.add(node);
    }
    ownedByRoot?.set(root, found);
  }
  return found;
};
/** @type {Owned} */
const NOTHING_OWNED = { byOwner: new Map(), all: new Set() };

/**
 * The text in an element. In a visible element, transparent content is skipped: a hidden tooltip keeps the text that it
 * showed last. An element that is not seen itself (a label that fades in) is named by all its content.
 * @param {any} node
 * @param {Collecting} how
 * @returns {string}
 */
const textIn = (node, how) => {
  const element = unclobbered(node);
  const generates = how.isName && !how.includesHidden && mayGenerate(element.ownerDocument);
  const only = element.firstChild;
  if (only?.nodeType === 3 && !only.nextSibling && !shadowOf(element) && !element.hasAttribute("aria-owns")) {
    if (!generates) return squeeze(only.data, how.limit);
    const [before, after] = [pseudoText(node, "::before", how.includesSigns), pseudoText(node, "::after", how.includesSigns)];
    return squeeze(before + only.data + after, how.limit);
  }
  let text = "";
  const owned = how.isName ? ownedIn(element.getRootNode()) : NOTHING_OWNED;
  const add = (/** @type {any} */ original) => {
    const child = unclobbered(original);
    const tag = child.localName;
    if (UNTEXTUAL.has(tag) || original === how.control) return;
    if (child.namespaceURI === SVG && UNNAMING_SVG.has(tag)) return;
    let shows = true;
    const style = styleOf(original);
    const { display } = style;
    if (!how.includesHidden) {
      if (display === "none" || isAriaHidden(child) || (how.isName && child.inert)) return;
      shows = display === "contents" || isSeen(original) || (!isSeen(how.root) && child.checkVisibility(VISIBLE_OR_TRANSPARENT));
      if (!shows && style.visibility === "visible") return;
    } else if (!how.isReferenced && isAriaHidden(child)) return;
    const space = BLOCK.test(display) || tag === "br" ? " " : "";
    text += space;
    const alternative = shows ? alternativeOf(original, child, style, how) : null;
    if (alternative === null) walk(original, child, shows && (how.includesHidden || style.contentVisibility !== "hidden"));
    else if (alternative) text += ` ${alternative} `;
    text += space;
  };
  const walk = (/** @type {any} */ parent, /** @type {any} */ inside, /** @type {boolean} */ shows) => {
    if (shows && generates) text += pseudoText(parent, "::before", how.includesSigns);
    for (const child of drawnNodes(parent, inside)) {
      if (text.length > how.limit) return;
      if (child.nodeType === 3) {
        if (shows) text += child.data;
      } else if (child.nodeType === 1 && !owned.all.has(child)) add(child);
    }
    for (const child of owned.byOwner.get(parent) ?? []) {
      how.visited ??= new Set();
      if (how.visited.has(child)) continue;
      how.visited.add(child);
      text += " ";
      add(child);
      text += " ";
    }
    if (shows && generates) text += pseudoText(parent, "::after", how.includesSigns);
  };
  walk(node, element, true);
  return squeeze(text, how.limit);
};

/** Elements that mean nothing but their content, unless an attribute gives them a role or a name. */
const PLAIN_TAGS = new Set(
  "abbr b bdi br cite code div em font h1 h2 h3 h4 h5 h6 i label mark p q s section slot small span strong sub sup time u".split(" "),
);
const MEANT = ["aria-label", "aria-labelledby", "title"];
/**
 * What stands for an element in the text around it; null: its content.
 * @param {any} node
 * @param {any} element The node, unclobbered.
 * @param {CSSStyleDeclaration} style
 * @param {Collecting} how
 * @returns {string | null}
 */
const alternativeOf = (node, element, style, how) => {
  const tag = element.localName;
  const label = squeeze(ariaOf(element, "aria-label") ?? "");
  if (!how.isName) {
    if (tag === "select" || tag === "textarea") return "";
    return label || (tag === "img" ? element.alt || null : tag === "svg" ? svgTitle(element) : null);
  }
  const isPlain = PLAIN_TAGS.has(tag) && !element.hasAttribute("role");
  if (isPlain && !MEANT.some((name) => element.hasAttribute(name))) {
    return style.content === "normal" ? null : squeeze(generatedText(style.content));
  }
  const { role } = how;
  const own = roleOf(node);
  const referenced = how.isReferenced ? "" : referencedText(element, how);
  if (referenced) return referenced;
  if (role) {
    if (node !== how.root && (NAMED_APART.has(own) || (own === "group" && ITEM.test(role)))) return label;
    const value = valueText(node, element, own);
    if (value !== null) return value || label || (FIELD_ROLES.has(own) ? fieldText(element) : "");
  } else if (tag === "select" || tag === "textarea") return "";
  if (label) return label;
  const native = nativeText(node, element, own, style);
  if (native !== null) return native;
  if (tag === "rt" || tag === "rp") return ""; // how the characters before it are read
  if (tag === "use") return usedTitle(element);
  if (own === "img" && tag !== "svg") return squeeze(element.title || ""); // its content is the picture
  if (!element.hasAttribute("title")) return null;
  return textIn(node, how) || squeeze(element.getAttribute("title"));
};

/**
 * The value of a field, which stands for it inside of a name; empty if it has none, null if the element is no field.
 * @param {any} node
 * @param {any} element The node, unclobbered.
 * @param {string} role
 * @returns {string | null}
 */
const valueText = (node, element, role) => {
  const tag = element.localName;
  if (tag === "select") return Array.from(element.selectedOptions, optionName).join(" ");
  if (tag === "textarea") return squeeze(element.value);
  if (tag === "input" && (element.type === "range" || isTextual(element.type))) return squeeze(element.value);
  if (tag === "input" && element.type === "password") return "•".repeat(Math.min(element.value.length, MAX_MASKED));
  if (tag === "meter" || (tag === "progress" && element.position >= 0)) return String(element.value);
  if (role === "slider" || role === "spinbutton") return squeeze(ariaOf(element, "aria-valuetext") ?? ariaOf(element, "aria-valuenow") ?? "");
  if (role === "listbox") {
    const chosen = element.querySelectorAll("[role=option][aria-selected=true]");
    return Array.from(chosen, (option) => nameOf(option, "option")).join(" ");
  }
  return role === "combobox" ? "" : null;
};
/** @param {string} type */
const isTextual = (type) => SUGGESTING_TYPES.has(type) || type === "number";

/** The visible text in an element. @param {any} node @returns {string} */
const contentText = (node) => textIn(node, collecting(node, "", { isName: false }));
const SHORT = { includesSigns: false, limit: MAX_TEXT };
/** What all texts have: those of snapshots are short, those of the accessibility snapshot are not. */
let extent = SHORT;
/**
 * Run `work` with longer texts.
 * @template T
 * @param {typeof SHORT} longer
 * @param {() => T} work
 * @returns {T}
 */
const withTexts = (longer, work) => {
  extent = longer;
  try {
    return work();
  } finally {
    extent = SHORT;
  }
};
/**
 * @param {any} root
 * @param {string} role
 * @param {Partial<Collecting>} [more]
 * @returns {Collecting}
 */
const collecting = (root, role, more) =>
  ({ root, role, isName: true, isReferenced: false, includesHidden: false, control: null, visited: null, ...extent, ...more });
