// Provides what the page had before an action, and ways back to it.

/** What the page had before the last action. */
const earlier = {
  /** The element that had the focus when the page settled after the action. @type {any} */
  focus: null,
  /** The field that was filled or the list that was chosen from, and what it held. @type {{ field: any, value: any } | null} */
  filled: null,
  /** Siblings of the element, and of what is around it, with their marks. @type {ChoicePeers[]} */
  choices: [],
  /** Points of the window with the element on top. @type {[number, number, any][]} */
  points: [],
  /** The element, and what handles a click on it. @type {{ element: any, handlers: Set<any> } | null} */
  clicked: null,
  /** Contents of the storage areas; null if they are too large to copy. @type {[Storage, [string, string][]][] | null} */
  storage: null,
};

const CLICK_TYPES = lasting(new Set(CLICKS));
const MAX_PEERS = 60; // more siblings are a list of contents
const PEER_LEVELS = 4; // a tab is often a link in an item of a list
const MAX_STORED = 200_000; // characters of storage that are copied for each action
const GRID = [0.02, 0.25, 0.5, 0.75, 0.98]; // shares of the window at which points are tried

/** The innermost element with the focus, through shadow roots and frames of the same origin. @returns {any} */
const focusedElement = () => {
  /** @type {any} */
  let element = document.activeElement;
  for (;;) {
    const inFrame = element && FRAME_TAGS.has(element.localName) ? documentIn(element)?.activeElement : null;
    const inner = element && (shadowOf(element)?.activeElement ?? inFrame);
    if (!inner) return element;
    element = inner;
  }
};
const noteFocus = () => {
  const element = focusedElement();
  if (element && element.localName !== "body") earlier.focus = element;
};

// ---- what is noted before an action ----

const MARKS = ["aria-selected", "aria-current", "aria-checked", "aria-pressed"];
/** Classes and states of an element by which a choice among siblings is marked. @param {any} element @returns {string[]} */
const marksOf = (element) => {
  const read = unclobbered(element);
  return [...read.classList, ...MARKS.filter((name) => (read.getAttribute(name) || "false") !== "false")];
};
/**
 * The element that lies in `peer` where the path of child numbers leads.
 * @param {any} peer
 * @param {number[]} path
 */
const counterpart = (peer, path) => path.reduce((element, number) => element && unclobbered(element).children[number], peer);
/** Marks of a sibling and of the counterpart of the element in it. @param {any} peer @param {number[]} path */
const peerMarks = (peer, path) => {
  const inner = path.length ? counterpart(peer, path) : null;
  return new Set([...marksOf(peer), ...(inner ? marksOf(inner).map((mark) => `inner ${mark}`) : [])]);
};
/** @param {any} element @returns {ChoicePeers[]} */
const choicesAround = (element) => {
  /** @type {ChoicePeers[]} */
  const found = [];
  /** @type {number[]} */
  let path = [];
  let node = element;
  for (let parent; found.length < PEER_LEVELS && (parent = unclobbered(node).parentElement); node = parent) {
    const siblings = [...unclobbered(parent).children];
    if (siblings.length <= MAX_PEERS) {
      const own = [...path];
      const { localName } = unclobbered(node);
      const peers = siblings.filter((one) => unclobbered(one).localName === localName);
      found.push({ node, path: own, marks: new Map(peers.map((one) => [one, peerMarks(one, own)])) });
    }
    path = [siblings.indexOf(node), ...path];
  }
  return found;
};
/** @returns {[Storage, [string, string][]][] | null} */
const copyStorage = () => {
  try {
    const areas = [localStorage, sessionStorage].map((area) => /** @type {[Storage, [string, string][]]} */ ([
      area, Object.keys(area).map((key) => [key, /** @type {string} */ (area.getItem(key))]),
    ]));
    const size = areas.reduce((sum, [, items]) => sum + items.reduce((own, [key, value]) => own + key.length + value.length, 0), 0);
    return size <= MAX_STORED ? areas : null;
  } catch {
    return null; // a document with an opaque origin has no access to storage
  }
};
/** Functions and attributes of an element that handle a click on it. @param {any} element @returns {Set<any>} */
const clickHandlers = (element) => new Set([
  ...(listeners.get(element) || []).flatMap(([type, callback]) => (CLICK_TYPES.has(type) ? [callback] : [])),
  ...CLICKS.map((type) => element[`on${type}`]).filter((handler) => typeof handler === "function"),
]);
/** @param {any} element */
const contentOf = (element) =>
  element.localName === "select" ? Array.from(element.options, (option) => option.selected) : element.value;
/**
 * Note what the page has before an action on an element.
 * @param {any} element
 * @param {string} kind
 */
const noteBefore = (element, kind) => {
  const isField = kind === "input" || kind === "select";
  earlier.focus = null;
  earlier.filled = isField && "value" in element ? { field: element, value: contentOf(element) } : null;
  earlier.choices = kind === "click" && element.ownerDocument === document ? choicesAround(element) : [];
  earlier.points = GRID.flatMap((y) => GRID.map((x) => /** @type {[number, number]} */ ([x * innerWidth, y * innerHeight]))).map(
    ([x, y]) => [x, y, document.elementFromPoint(x, y)]);
  earlier.clicked = kind === "click" ? { element, handlers: clickHandlers(element) } : null;
  earlier.storage = copyStorage();
};

// ---- ways back ----

/** Put the focus where the action had left it: dialogs, menus and fields close when Escape is pressed inside of them. */
const refocus = () => {
  noteAction();
  if (earlier.focus?.isConnected) earlier.focus.focus({ preventScroll: true });
};
/**
 * Put back what the field held. Null: that is not possible. `isSet`: it is done. Else the field has the focus, its content is
 * selected, and `value` is to be typed.
 */
const refill = () => {
  const { field, value } = earlier.filled ?? {};
  if (!field?.isConnected) return null;
  noteAction();
  if (field.localName === "select") {
    for (const [i, option] of [...field.options].entries()) option.selected = value[i] ?? false;
    for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, { bubbles: true, composed: type === "input" }));
    return { isSet: true };
  }
  if (field.localName === "input" && PICKED_TYPES.has(field.type)) return setValue(field, value);
  field.focus({ preventScroll: true });
  field.select?.();
  return { value };
};
/**
 * The path of the sibling that lost a mark which the element, or what is around it, gained by the action: the tab that was
 * selected earlier. Empty if there is no such sibling, or more than one.
 */
const previousChoice = () => {
  for (const { node, path, marks } of earlier.choices) {
    if (!unclobbered(node).isConnected) continue;
    const had = marks.get(node);
    const gained = [...peerMarks(node, path)].filter((mark) => !had?.has(mark));
    if (!gained.length) continue;
    const losers = [...marks].filter(([peer, old]) => {
      const now = peer !== node && unclobbered(peer).isConnected ? peerMarks(peer, path) : old;
      return gained.some((mark) => old.has(mark) && !now.has(mark));
    });
    if (losers.length === 1) return pathFromRoot(losers[0][0]);
  }
  return "";
};
/** Elements to which a click does something else than to leave what is open. */
const REACTIVE = [
  "a[href], button, input, select, textarea, label, summary, [tabindex], [onclick], [contenteditable]",
  "iframe, object, embed, canvas, svg, video, audio",
  ..."button link menuitem menuitemcheckbox menuitemradio option switch tab treeitem checkbox radio textbox combobox slider"
    .split(" ").map((role) => `[role=${role}]`),
].join(", ");
/** @param {any} element */
const isReactive = (element) => {
  if (unclobbered(element).closest(REACTIVE) || getComputedStyle(element).cursor === "pointer") return true;
  for (let node = element; node && unclobbered(node).localName !== "body"; node = unclobbered(node).parentElement) {
    if (hasAny(ownTypes(node), CLICKS)) return true;
  }
  return false;
};
/**
 * A point of the window at which a click leaves what the action opened: one that shows the same element without a reaction
 * as before the action, or a backdrop over the window.
 * @returns {Point | null}
 */
const pointOutside = () => {
  const free = earlier.points.find(([x, y, element]) =>
    element && document.elementFromPoint(x, y) === element && !isReactive(element));
  if (free) return { x: free[0], y: free[1] };
  const backdrop = backdropOf(document);
  if (!backdrop) return null;
  const corner = cornersOf(window).find(([x, y]) => document.elementFromPoint(x, y) === backdrop);
  return corner ? { x: corner[0], y: corner[1] } : null;
};
/** Whether something handles a click on the element that did not when it was clicked. */
const hasOtherHandlers = () => {
  const { element, handlers } = earlier.clicked ?? {};
  return Boolean(element?.isConnected) && [...clickHandlers(element)].some((handler) => !handlers?.has(handler));
};
/** Put local and session storage back. */
const restoreStorage = () => {
  for (const [area, items] of earlier.storage ?? []) {
    const kept = new Map(items);
    for (const key of Object.keys(area)) if (!kept.has(key)) area.removeItem(key);
    for (const [key, value] of kept) if (area.getItem(key) !== value) area.setItem(key, value);
  }
};
