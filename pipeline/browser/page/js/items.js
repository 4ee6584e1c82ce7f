// Provides `itemsMeant`: rows, items, cards, cells and tree nodes inside an element whose listener says not which it means.
//
// A listener of a list often calls a function that looks for the row, or is a method that is bound. Its source then names
// no element. The repeated children of equal structure are what it may mean; clicking them shows whether it does. No form is
// an item: so only what may be a form is read past its fields, see `unclobbered`.

/** Pseudo types in the results of `readHandlers`, beside types of events. */
const IS_ITEM = "item"; // the element is one of the items of a listener around it
const IS_ITEM_OF_PAGE = "item of the page"; // the same, of a listener of the whole page: it may mean something else
const HAS_ITEMS = "list"; // the element listens for its items
const PART_CODE = "code: "; // what is called when parts of the element are clicked follows, see `codeOf`

const LISTED = "li, tr, [role=listitem], [role=row], [role=option], [role=treeitem]";
const LIST = "ul, ol, table, tbody, [role=list], [role=table], [role=grid], [role=rowgroup], [role=tree], [role=listbox]";
// Text that is read, and parts of other elements.
const UNLISTED = new Set([
  "p", "h1", "h2", "h3", "h4", "h5", "h6", "td", "th", "dt", "dd", "thead", "tbody", "tfoot", "colgroup", "col", "hr", "pre",
  "blockquote", "option", "optgroup", "label", "form", "fieldset", "nav", "main", "header", "footer", "iframe",
]);
const OWN_LINKS = "a[href], area[href]";
const OWN_CONTROLS =
  "button, input, select, textarea, summary, label, [role=button], [role=link], [role=tab], [role=menuitem], [role=checkbox], [role=switch], [onclick], [contenteditable]";
const WHOLE = "a[href], button, label, summary, [role=button], [role=link]"; // what is clicked as a whole
const LANDMARKS = "main, nav, h1, [role=main], [role=navigation], [role=banner]";
const MAX_ITEMS = 200; // of one list
const MAX_LISTS_MEANT = 3; // an element with more of them listens for something else
const MAX_ITEM_TEXT = 1_000; // characters
const MAX_CODE = 2_000; // characters
const MIN_ITEMS = 3;
const MIN_CELLS = 3; // of a row
const MAX_CELL_TEXT = 3; // characters of a day, a seat, a field of a board

// ---- listeners ----

/** @param {any} target */
const isPage = (target) => target === window || target === document || target === document.body || target === document.documentElement;
/**
 * [type, callback] of the handlers for clicks that scripts registered at an element: listeners, properties, attributes, and
 * what frameworks and jQuery keep there. Capturing listeners of the whole page see clicks before they arrive, and only watch.
 * @param {any} target
 * @param {boolean} [withDelegates] Whether to include handlers for which jQuery keeps a selector.
 * @returns {[string, any][]}
 */
const clickCallbacks = (target, withDelegates = false) => {
  /** @type {[string, any][]} */
  const found = [];
  const keys = Object.keys(target);
  const isOfJQuery = keys.some((key) => /^jQuery\d+$/.test(key) && target[key]?.events);
  for (const [type, callback, isCapture] of listeners.get(target) || []) {
    const dispatches = isOfJQuery && typeof callback === "function" && /\.event\.dispatch/.test(apply(functionSource, callback, []));
    if (CLICKS.includes(type) && !(isCapture && isPage(target)) && !dispatches) found.push([type, callback]);
  }
  for (const [type, handler] of propertyHandlers(target)) if (CLICKS.includes(type)) found.push([type, handler]);
  for (const key of keys) {
    if (key.startsWith("__reactProps$") || key.startsWith("__reactEventHandlers$")) {
      if (typeof target[key]?.onClick === "function") found.push(["click", target[key].onClick]);
    } else if (key === "$$click" || key === "__click") found.push(["click", target[key]]);
    else if (/^jQuery\d+$/.test(key)) {
      const handlers = target[key]?.events?.click;
      for (const { selector, handler } of Array.isArray(handlers) ? handlers : []) if (!selector || withDelegates) found.push(["click", handler]);
    }
  }
  return found;
};
/**
 * Names of what a handler calls, and its own. Also collections and widgets have methods to `delete` and to `destroy`.
 * @param {any} callback
 * @returns {string[]}
 */
const namesCalled = (callback) => {
  const handler = typeof callback === "function" ? callback : callback?.handleEvent;
  if (typeof handler !== "function") return [];
  const source = apply(functionSource, handler, []).slice(0, MAX_SOURCE);
  const called = [...source.matchAll(/([\w$]{3,})\s*(?:\?\.)?\(/g)].map(([, name]) => name);
  return [`${handler.name}`, ...called.filter((name) => name !== "delete" && name !== "destroy")];
};
/**
 * What the code says that runs when a part of an element is clicked: handlers that attributes declare, and names of what
 * listeners call. It belongs to the parts, as the handler of a button belongs to the button.
 * @param {any} target
 * @returns {string}
 */
const codeOf = (target) => {
  const declared = target instanceof Element ? declarationsOf(target, "parts").handler : "";
  const called = new Set(clickCallbacks(target, true).flatMap(([, callback]) => namesCalled(callback)));
  return `${declared} ${[...called].join(" ").slice(0, MAX_CODE)}`.trim().toWellFormed();
};
/**
 * Whether a handler can tell elements inside its own apart. One that ignores the event cannot; one that asks whether the
 * click was at its own element, or outside of another, closes something.
 * @param {any} callback
 */
const tellsApart = (callback) => {
  if (typeof callback !== "function") return true; // an object with `handleEvent`
  const source = apply(functionSource, callback, []);
  if (source.includes("[native code]")) return true; // bound
  if (/\btarget\s*[!=]==?|\.contains\(\s*[\w$]+\.(target|srcElement)\b/.test(source)) return false;
  if (/\barguments\b|\bwindow\.event\b/.test(source)) return true;
  const [header, name] = /^(?:async\s+)?(?:function\b[^(]*|[\w$]+)?\s*\(?\s*(\.\.\.|[{[]|[\w$]*)/.exec(source) ?? ["", ""];
  const [, bare] = /^(?:async\s+)?([\w$]+)\s*=>/.exec(source) ?? [];
  const parameter = bare ?? name;
  if (parameter === "..." || parameter === "{" || parameter === "[") return true;
  const rest = source.slice(bare ? source.indexOf("=>") : header.length);
  return parameter !== "" && new RegExp(`(?<![\\w$])${parameter.replace(/\$/g, "\\$&")}(?![\\w$])`).test(rest);
};
/**
 * Whether the source of a handler names elements that are inside its target. A handler of the whole page that has a selector
 * means what other pages show.
 * @param {any} callback
 * @param {any} target
 */
const namesElements = (callback, target) => {
  const root = target === window ? document : target;
  for (const selector of selectorsIn(callback)) {
    if (isPage(target) && /^\.|.[\s.[>:]/.test(selector)) return true;
    if (unclobbered(root).querySelector(selector)) return true;
  }
  return false;
};
/** @param {any} target @returns {string[]} Types of the clicks that may mean a part of the target. */
const unnamedTypes = (target) => {
  const callbacks = clickCallbacks(target).filter(([, callback]) => !(typeof callback === "function" && namesElements(callback, target)));
  return callbacks.filter(([, callback]) => tellsApart(callback)).map(([type]) => type);
};

// ---- lists ----

/** @param {any} node @returns {any[]} Forms among them are read past their fields. */
const childrenOf = (node) => {
  const children = [];
  for (let child = unclobbered(node).firstElementChild; child; child = children.at(-1).nextElementSibling) {
    children.push(unclobbered(child));
  }
  return children.filter((child) => !UNRENDERED_TAGS.has(child.localName));
};
/** @param {any} element @returns {string} Its classes, without what marks one of several: `odd`, `active`, `row-3`. */
const classesOf = (element) =>
  (element.getAttribute("class") ?? "").split(/\s+/).filter((/** @type {string} */ word) => word &&
    !/\d|^(is-|has-)?(active|selected|current|odd|even|first|last|open|new)$/.test(word)).sort().join(" ");
/** @param {any} element @returns {string} Its parts, one word for those that are repeated. */
const partsOf = (element) => childrenOf(element).map((child) => child.localName).filter((tag, i, all) => tag !== all[i - 1]).join(" ");
/**
 * @param {string[]} words
 * @returns {string} The most frequent one.
 */
const mostFrequent = (words) => {
  /** @type {Map<string, number>} */
  const counts = new Map();
  let best = "";
  for (const word of words) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
    if (/** @type {number} */ (counts.get(word)) > (counts.get(best) ?? 0)) best = word;
  }
  return best;
};
/** @param {any} element */
const hasContent = (element) => element.textContent.trim() !== "" || element.querySelector("img, svg, canvas") !== null;
/**
 * The children of an element that form a list: rows and items of lists, else at least three of equal structure.
 * @param {any} parent
 * @returns {any[]}
 */
const listIn = (parent) => {
  const children = childrenOf(parent);
  const listed = children.filter((child) => child.localName !== "form" && child.matches(LISTED) && !(child.localName === "tr" && !child.querySelector("td")));
  if (listed.length > 1) return listed.filter(hasContent);
  if (children.length < MIN_ITEMS || parent.matches("[role], [tabindex]")) return [];
  const tag = mostFrequent(children.map((child) => child.localName));
  const alike = children.filter((child) => child.localName === tag && child.namespaceURI === XHTML && !UNLISTED.has(tag));
  const parts = mostFrequent(alike.map(partsOf));
  const classes = mostFrequent(alike.map(classesOf));
  const items = alike.filter((child) => (classes ? classesOf(child) === classes : partsOf(child) === parts));
  if (items.length < MIN_ITEMS || items.length < 0.6 * children.length) return [];
  // Icon, label and arrow of one button are alike, too.
  if (!parts && !classes && items.length <= MIN_ITEMS) return [];
  return items.every((item) => /^(block|flex|grid|table|list-item|flow-root)/.test(styleOf(item).display)) ? items : [];
};
/**
 * The lists inside an element, the outermost ones.
 * @param {any} root
 * @param {number} limit
 * @param {any[][]} [lists]
 */
const listsInside = (root, limit, lists = []) => {
  const items = listIn(root);
  if (items.length) lists.push(items);
  const inside = new Set(items);
  for (const child of childrenOf(root)) {
    if (lists.length > limit) break;
    if (!inside.has(child) && !LEAF_TAGS.has(child.localName) && !child.matches("p, pre, label")) listsInside(child, limit, lists);
  }
  return lists;
};
/**
 * The cells of rows if any of them may be meant, as in a calendar, a board or a plan of seats: cells that are as short in
 * every column. In a table of records the row is meant.
 * @param {any[]} rows
 * @returns {any[]}
 */
const cellsOf = (rows) => {
  const table = rows.map((row) => childrenOf(row).filter((cell) => cell.localName !== "th"));
  const width = Math.max(...table.map((cells) => cells.length));
  if (rows.length < 2 || width < MIN_CELLS) return [];
  const isShort = (/** @type {any} */ cell) => !cell || cell.textContent.trim().split(/\s/)[0].length <= MAX_CELL_TEXT;
  for (let column = 0; column < width; column++) {
    if (table.filter((cells) => isShort(cells[column])).length < rows.length / 2) return [];
  }
  return table.flatMap((cells) => cells);
};
/**
 * What is clicked of an item that contains further ones: its label, else the item itself.
 * @param {any} item
 * @param {Set<any>} items
 */
const labelOf = (item, items) => {
  const holdsItems = (/** @type {any} */ part) => [...part.querySelectorAll("*")].some((inner) => items.has(inner)) || items.has(part);
  const parts = childrenOf(item);
  return parts.some(holdsItems) ? parts.find((part) => !holdsItems(part) && part.textContent.trim()) ?? item : item;
};
/** A list, with the items inside its items (nodes of a tree). @param {any[]} list @returns {any[]} */
const withInner = (list) => {
  const [first] = list;
  const classes = classesOf(first);
  const inner = list.flatMap((item) => [...item.querySelectorAll(first.matches(LISTED) ? LISTED : first.localName)])
    .filter((item) => first.matches(LISTED) ? item.localName === first.localName : classes && classesOf(item) === classes);
  if (!inner.length) return list;
  const all = new Set([...list, ...inner]);
  return [...all].map((item) => labelOf(item, all));
};
/** @param {any[]} list @returns {any[]} */
const unitsOf = (list) => {
  const cells = cellsOf(list);
  return (cells.length ? cells : withInner(list)).slice(0, MAX_ITEMS);
};
/**
 * Whether a person clicks a link or a button of an item, and not the item: it begins the item, or makes up half of its text.
 * @param {any} item
 */
const isClickedInside = (item) => {
  const own = Array.from(item.querySelectorAll(`${OWN_LINKS}, ${OWN_CONTROLS}`), unclobbered);
  if (item.closest(WHOLE)) return true;
  if (!own.length) return false;
  const [text, inner] = [item.textContent.trim(), own.map((part) => part.textContent.trim())];
  return inner.join("").length >= text.length / 2 || (own[0].matches(OWN_LINKS) && inner[0] !== "" && text.startsWith(inner[0]));
};

/**
 * Whether an element is a list, or contains nothing but one.
 * @param {any} element
 * @returns {boolean}
 */
const isOnlyList = (element) => {
  const [first, ...others] = childrenOf(element);
  return element.matches(LIST) || (others.length === 0 && first !== undefined && isOnlyList(first));
};

/**
 * The items that the click listeners of an element may mean, and the type of the click.
 * @param {any} target
 * @returns {{ type: string, items: any[] } | null}
 */
const itemsMeant = (target) => {
  const element = unclobbered(target);
  if (!element.firstElementChild || element.namespaceURI !== XHTML || element.matches(LANDMARKS) || element.querySelector(LANDMARKS)) return null;
  if (element.matches(WHOLE)) return null;
  const [type] = unnamedTypes(target);
  if (!type) return null;
  const lists = listsInside(element, MAX_LISTS_MEANT);
  if (!lists.length || lists.length > MAX_LISTS_MEANT) return null;
  // A card whose cursor is a pointer is clicked as a whole, whatever it consists of. The cursor of a list is that of its items.
  if (styleOf(target).cursor === "pointer" && !isOnlyList(element)) return null;
  const items = lists.flatMap(unitsOf).filter((item) => !isClickedInside(item));
  return items.length ? { type, items } : null;
};
/**
 * The items that the click listeners of the whole page may mean: those of lists with nothing else to click; and what the
 * listeners call.
 * @param {Map<Element, Set<string>>} handled
 * @returns {{ code: string, items: any[] }}
 */
const itemsOfPage = (handled) => {
  const { body, documentElement } = document;
  const wide = [...handled.keys()].filter((element) => element === body || unclobbered(element).querySelector(LANDMARKS));
  const targets = [window, document, documentElement, ...wide];
  if (!body || targets.some(isFrameworkRoot)) return { code: "", items: [] };
  const unnamed = targets.filter((target) => unnamedTypes(target).length);
  if (!unnamed.length) return { code: "", items: [] };
  const listening = new Set([...handled.keys()].filter((element) => !wide.includes(element)));
  const items = listsInside(body, Infinity).flatMap(unitsOf).filter((item) =>
    hasContent(item) && item.textContent.length <= MAX_ITEM_TEXT && !item.querySelector(`${OWN_LINKS}, ${OWN_CONTROLS}`) &&
    !item.closest(WHOLE) && !listening.has(item) &&
    ![...item.querySelectorAll("*")].some((part) => listening.has(part)) && !isInside(item, listening));
  return { code: unnamed.map(codeOf).join(" "), items };
};
/** @param {any} item @param {Set<any>} elements */
const isInside = (item, elements) => {
  for (let node = parentOf(item); node; node = parentOf(node)) if (elements.has(node)) return true;
  return false;
};
