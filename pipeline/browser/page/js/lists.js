// Provides the rows of virtual lists, which are in the document only while the list is scrolled to them.
//
// A virtual list is a box that scrolls, whose script renders only the visible rows, so that the box is higher than its
// content. A snapshot scrolls it through and records the candidates in its rows. Their paths contain the scroll position:
// `BOX ~~~ 480/div[1]/a[3]` is the full path of the box, its scroll offset in CSS pixels, and the path from there.

const SCROLLED = " ~~~ ";
const MAX_LISTS = 3; // of one document
const MAX_LIST_SCREENS = 20;
const MAX_LIST_ELEMENTS = 2_000; // a list with more elements does not virtualise its rows
const ROWS_TIMEOUT_MS = 1_000; // time for the rows to be rendered

/** Elements with a scroll listener. @type {Set<any>} */
const scrollBoxes = lasting(new Set());
/** Content of a list at its top, and its further rows. @type {Map<any, { atTop: string, rows: Row[] }>} */
const rowsByList = lasting(new Map());
/** Lists of the latest snapshot. @type {any[]} */
let lists = [];

let pageListensToScroll = false;
/** @param {unknown} target */
const noteScrollListener = (target) => {
  if (target instanceof Element && target !== document.body && target !== document.documentElement) scrollBoxes.add(target);
  else pageListensToScroll = true;
};
/**
 * Lower end of the last text in a box, in coordinates of its content; 0 if there is no text.
 * @param {any} box
 * @returns {number}
 */
const textsEnd = (box) => {
  let end = -Infinity;
  for (const part of unclobbered(box).querySelectorAll("*")) {
    for (let node = part.firstChild; node; node = node.nextSibling) {
      if (node.nodeType !== 3 || !node.data.trim()) continue;
      end = Math.max(end, part.getBoundingClientRect().bottom);
      break;
    }
  }
  return Math.max(0, end - box.getBoundingClientRect().top - box.clientTop + box.scrollTop);
};
/**
 * Whether a box is a virtual list: scrolled to its top, with at least half a screen of the box below its last text.
 * @param {any} box
 */
const isVirtualList = (box) => {
  const { clientHeight, scrollHeight } = box;
  if (!box.isConnected || box.getRootNode() !== document || box.scrollTop !== 0) return false;
  if (clientHeight === 0 || scrollHeight < 1.5 * clientHeight) return false;
  if (box.getElementsByTagName("*").length > MAX_LIST_ELEMENTS) return false;
  const { overflowY } = getComputedStyle(box);
  const end = overflowY === "auto" || overflowY === "scroll" ? textsEnd(box) : 0;
  return end > 0 && scrollHeight - end >= clientHeight / 2;
};

/**
 * Scroll a list and wait for its rows.
 * @param {any} box
 * @param {number} top
 * @param {SnapshotOptions} options
 */
const scrollList = async (box, top, options) => {
  const start = now();
  activity.lastConsequence = start;
  box.scrollTo({ top, behavior: "instant" });
  await nextFrame(); // scroll events are dispatched in a frame
  do await new Promise((done) => nativeSetTimeout(done, POLL_MS));
  while (now() - start < ROWS_TIMEOUT_MS && !withNatives(() => allQuiet(options, start)));
};
/**
 * Key of a candidate that does not depend on its position.
 * @param {Pick<Candidate, "kind" | "value" | "role" | "name" | "target">} candidate
 */
const rowKey = ({ kind, value, role, name, target }) => stringify([kind, value, role, name, target]);
/**
 * The candidates that are in a list now, with their path from the list.
 * @param {any} box
 * @param {SnapshotOptions} options
 * @returns {{ path: string, candidate: Candidate, element: any }[]}
 */
const candidatesInList = (box, options) => {
  const boxPath = pathFromRoot(box);
  const pass = passOverPage(options);
  return pass.candidates
    .map((candidate, i) => ({ path: pathOf(pass, candidate.place), candidate, element: pass.elements[i] }))
    .filter(({ path, candidate }) => candidate.frame === 0 && path.startsWith(`${boxPath}/`))
    .map(({ path, ...more }) => ({ path: path.slice(boxPath.length), ...more }));
};
/**
 * Scroll a list through and collect the rows that are not visible at its top.
 * @param {any} box
 * @param {SnapshotOptions} options
 * @param {number} [deadline]
 */
const readRows = async (box, options, deadline = Infinity) => {
  const boxPath = pathFromRoot(box);
  const known = new Set(withNatives(() => candidatesInList(box, options).map(({ candidate }) => rowKey(candidate))));
  /** @type {Row[]} */
  const rows = [];
  await noteScroll();
  for (let screen = 1; screen <= MAX_LIST_SCREENS && now() < deadline; screen++) {
    const before = box.scrollTop;
    await scrollList(box, before + box.clientHeight, options);
    if (!box.isConnected || box.scrollTop <= before) break;
    withNatives(() => {
      for (const { path, candidate } of candidatesInList(box, options)) {
        const key = rowKey(candidate);
        if (known.has(key)) continue;
        known.add(key);
        rows.push({ ...candidate, path: `${boxPath}${SCROLLED}${box.scrollTop}${path}` });
      }
    });
  }
  await scrollList(box, 0, options);
  return rows;
};
/**
 * Read the rows of the virtual lists of this document, once for each content that a list has at its top. While pointer or
 * focus rest on an element, lists are not scrolled, because that would move the element.
 * @param {SnapshotOptions} options
 */
const gatherRows = async (options) => {
  lists = [];
  for (const box of document.querySelectorAll("[onscroll]")) scrollBoxes.add(box);
  if (scrollBoxes.size === 0) return;
  for (const box of scrollBoxes) if (!box.isConnected) scrollBoxes.delete(box);
  const boxes = withNatives(() => [...scrollBoxes].filter(isVirtualList).slice(0, MAX_LISTS));
  for (const box of boxes) {
    if (rowsByList.get(box)?.atTop !== box.innerHTML) {
      if (options.hovering) continue;
      const rows = await readRows(box, options);
      rowsByList.set(box, { atTop: box.innerHTML, rows });
    }
    lists.push(box);
  }
};
/**
 * Add the rows to a pass as candidates. They are not part of the structure or of the texts.
 * @param {Pass} pass
 */
const addRows = (pass) => {
  const counts = new Map();
  for (const box of lists) {
    for (const { path, ...candidate } of /** @type {any} */ (rowsByList.get(box)).rows) {
      const key = stringify([candidate.kind, candidate.value, candidate.role, candidate.name]);
      const others = pass.candidates.filter((c) => c.frame === 0 && stringify([c.kind, c.value, c.role, c.name]) === key).length;
      const nth = counts.get(key) ?? others;
      counts.set(key, nth + 1);
      const place = pass.steps.push(path) - 1;
      pass.parents.push(-1);
      pass.unexposed.push(place);
      pass.candidates.push({ ...candidate, place, nth, covered: false });
    }
  }
};

/**
 * Scroll the list of a recorded row until the row is in the document.
 * @param {RecordedAction} action
 * @param {SnapshotOptions} options
 * @returns {Promise<FoundElement | null | undefined>} Null if the list is gone; undefined if the row does not appear.
 */
const findRow = async (action, options) => {
  const [boxPath, rest] = action.xpath.split(SCROLLED);
  const box = withNatives(() => resolve(boxPath, document));
  if (!box) return null;
  const [, offset, path] = /^(\d+(?:\.\d+)?)(.*)$/.exec(rest) ?? [];
  const wanted = rowKey(action);
  const { scrollTop: top, scrollLeft: left } = box;
  /** @type {FoundElement | null | undefined} */
  let found = null;
  for (let screen = -1; screen <= MAX_LIST_SCREENS && !found && box.isConnected; screen++) {
    // First at the recorded offset, then from the top down.
    const before = box.scrollTop;
    await scrollList(box, screen < 0 ? Number(offset) : screen && before + box.clientHeight, options);
    if (screen > 0 && box.scrollTop <= before) break;
    const findWanted = () => withNatives(() => candidatesInList(box, options).find(({ candidate }) => rowKey(candidate) === wanted));
    const row = findWanted();
    if (!row) continue;
    // The action needs the row in the middle. Scrolling it there makes the list draw its rows again, which must not happen
    // between the press and the release of the pointer.
    withNatives(() => scrollToElement(row.element));
    await scrollList(box, box.scrollTop, options);
    const shown = findWanted();
    found = shown && [shown.element, screen < 0 && row.path === path ? "exact" : "role"];
  }
  scrolledForAction.push([box, top, left, box.scrollTop, box.scrollLeft]);
  return found;
};
/** @param {RecordedAction} action */
const isRow = (action) => action.xpath.includes(SCROLLED);
