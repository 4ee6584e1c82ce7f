// Which rows of a list are in the document only while it is scrolled to them, and how is one of them found again?
//
// A virtual list is a box that scrolls, whose script draws the rows that can be seen, and that is higher than what is in
// it. A look scrolls it through and takes down what can be acted on in its rows. Their paths say where the list stood:
// `BOX ~~~ 480/div[1]/a[3]`, the full path of the box, its scroll offset in CSS pixels, and the path from there.

const SCROLLED = " ~~~ ";
const MAX_LISTS = 3; // of one document
const MAX_LIST_SCREENS = 20;
const MAX_LIST_ELEMENTS = 2_000; // a list that keeps that many does not hide the others
const ROWS_WAIT_MS = 1_000; // so long rows may take to be drawn

const scrollBoxes = lasting(new Set()); // elements that listen to being scrolled
const gathered = lasting(new Map()); // list -> what was in it at its top, and its further rows
let lists = []; // those of the latest look

const listensToScroll = (target) => {
  if (target instanceof Element) scrollBoxes.add(target);
};
// How far down the texts of a box reach, in its own coordinates; 0 when there are none.
const textsEnd = (box) => {
  let end = -Infinity;
  for (const part of box.querySelectorAll("*")) {
    for (let node = part.firstChild; node; node = node.nextSibling) {
      if (node.nodeType !== 3 || !node.data.trim()) continue;
      end = Math.max(end, part.getBoundingClientRect().bottom);
      break;
    }
  }
  return Math.max(0, end - box.getBoundingClientRect().top - box.clientTop + box.scrollTop);
};
// In this document, at its top, with at least half a view below its last text.
const isVirtual = (box) => {
  const { clientHeight, scrollHeight } = box;
  if (!box.isConnected || box.getRootNode() !== document || box.scrollTop !== 0) return false;
  if (clientHeight === 0 || scrollHeight < 1.5 * clientHeight) return false;
  if (box.getElementsByTagName("*").length > MAX_LIST_ELEMENTS) return false;
  const { overflowY } = getComputedStyle(box);
  const end = overflowY === "auto" || overflowY === "scroll" ? textsEnd(box) : 0;
  return end > 0 && scrollHeight - end >= clientHeight / 2;
};

const scrollList = async (box, top, options) => {
  const start = now();
  activity.owed = start;
  box.scrollTo({ top, behavior: "instant" });
  await frame(); // in which it is told that it was scrolled
  do await new Promise((resolve) => nativeSetTimeout(resolve, 8));
  while (now() - start < ROWS_WAIT_MS && !withNatives(() => allQuiet(options.quietMs, start)));
};
const sameThing = ({ kind, value, role, name, target }) => stringify([kind, value, role, name, target]);
// [path from the box, candidate, element] of what can be acted on in it now.
const inList = (box, options) => {
  const path = pathFromRoot(box);
  const seen = createLook(options).whole();
  return seen.candidates
    .map((candidate, i) => [seen.pathOf(candidate.place), candidate, seen.elements[i]])
    .filter(([its, { frame }]) => frame === 0 && its.startsWith(`${path}/`))
    .map(([its, ...more]) => [its.slice(path.length), ...more]);
};
const readRows = async (box, options) => {
  const path = pathFromRoot(box);
  const known = new Set(withNatives(() => inList(box, options).map(([, candidate]) => sameThing(candidate))));
  const rows = [];
  for (let screen = 1; screen <= MAX_LIST_SCREENS; screen++) {
    const before = box.scrollTop;
    await scrollList(box, before + box.clientHeight, options);
    if (!box.isConnected || box.scrollTop <= before) break;
    withNatives(() => {
      for (const [from, candidate] of inList(box, options)) {
        const key = sameThing(candidate);
        if (known.has(key)) continue;
        known.add(key);
        rows.push({ ...candidate, path: `${path}${SCROLLED}${box.scrollTop}${from}` });
      }
    });
  }
  await scrollList(box, 0, options);
  return rows;
};
// Once for each content that a list has at its top. Not while pointer or focus rest on something, which would move.
const gatherRows = async (options) => {
  lists = [];
  for (const box of document.querySelectorAll("[onscroll]")) scrollBoxes.add(box);
  if (scrollBoxes.size === 0) return;
  for (const box of scrollBoxes) if (!box.isConnected) scrollBoxes.delete(box);
  const found = withNatives(() => [...scrollBoxes].filter(isVirtual).slice(0, MAX_LISTS));
  for (const box of found) {
    if (gathered.get(box)?.atTop !== box.innerHTML) {
      if (options.hovering) continue;
      const rows = await readRows(box, options);
      gathered.set(box, { atTop: box.innerHTML, rows });
    }
    lists.push(box);
  }
};
// Put the rows into a look: they can be acted on, and are no part of the structure, nor of the texts.
const addRows = (seen) => {
  const counts = new Map();
  for (const box of lists) {
    for (const { path, ...candidate } of gathered.get(box).rows) {
      const key = stringify([candidate.kind, candidate.value, candidate.role, candidate.name]);
      const others = seen.candidates.filter((c) => c.frame === 0 && stringify([c.kind, c.value, c.role, c.name]) === key).length;
      const nth = counts.get(key) ?? others;
      counts.set(key, nth + 1);
      const place = seen.steps.push(path) - 1;
      seen.parents.push(-1);
      seen.veiled.push(place);
      seen.candidates.push({ ...candidate, place, nth, covered: false });
    }
  }
};

// Scroll the list that a row was recorded in until the row is there: [element, rung], or nothing when it never is.
const findRow = async (action, options) => {
  const [path, rest] = action.xpath.split(SCROLLED);
  const box = withNatives(() => resolve(path, document));
  if (!box) return null;
  const [, offset, from] = /^(\d+(?:\.\d+)?)(.*)$/.exec(rest) ?? [];
  const wanted = sameThing(action);
  const { scrollTop: top, scrollLeft: left } = box;
  let row = null;
  for (let screen = -1; screen <= MAX_LIST_SCREENS && !row && box.isConnected; screen++) {
    // First where it was recorded, then from the top down.
    const before = box.scrollTop;
    await scrollList(box, screen < 0 ? Number(offset) : screen && before + box.clientHeight, options);
    if (screen > 0 && box.scrollTop <= before) break;
    row = withNatives(() => inList(box, options).find(([, candidate]) => sameThing(candidate) === wanted));
    if (row) row = [row[2], screen < 0 && row[0] === from ? "exact" : "role"];
  }
  moved.push([box, top, left, box.scrollTop, box.scrollLeft]);
  return row;
};
const isRow = (action) => action.xpath.includes(SCROLLED);
