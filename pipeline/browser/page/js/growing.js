// Provides `growingBoxes` and `readOn`: the further rows of lists that grow when their end is shown.

const MAX_BATCHES = 12; // of one list
const MAX_FURTHER_ROWS = 60; // of one list; the links of more are not acted on
const END_TIMEOUT_MS = 5_000; // time for a batch to arrive that was requested, or that a timer adds
const REQUEST_WITHIN_MS = 1_000; // of the scroll
const READ_ON_MS = 8_000; // for all lists of a document

/** Boxes at their top that may add rows when their end is shown: they listen, or something in them is waited for. @returns {any[]} */
const growingBoxes = () => {
  const boxes = new Set(pageListensToScroll || window.onscroll || document.onscroll ? [document.scrollingElement] : []);
  const page = mainScroller();
  for (const box of scrollBoxes) boxes.add(box);
  for (const target of observedTargets) {
    if (!target.isConnected) observedTargets.delete(target);
    let box = /** @type {any} */ (target);
    while (box && box.nodeType === 1 && !canScroll(box, false)) box = parentOf(box);
    if (target.isConnected) boxes.add(box ?? page);
  }
  return [...boxes].filter((box) => box?.isConnected && box.getRootNode() === document && canScroll(box, false) && box.scrollTop === 0 &&
    !lists.includes(box)).slice(0, MAX_LISTS);
};
/**
 * Show the end of a box, and wait for what that adds. Resolves to whether anything has changed, and whether what was requested
 * is still to come.
 * @param {any} box
 * @param {SnapshotOptions} options
 * @param {number} deadline
 */
const showEnd = async (box, options, deadline) => {
  const start = now();
  activity.actionStart = activity.lastConsequence = start; // the timers that it sets count
  box.scrollTo({ top: box.scrollHeight, behavior: "instant" });
  await nextFrame();
  await observersHaveRun();
  withNatives(flushMutations);
  if (activity.lastChange <= start && activity.inFlight.size === 0 && activity.timers.size === 0) {
    return { changed: false, isPending: false };
  }
  const requests = new Set(); // an answer that takes long is no long poll here
  let [isQuiet, isPending, answered] = [false, false, start];
  const goesOn = () => {
    const time = now();
    if (time >= deadline || time - start >= END_TIMEOUT_MS) return false;
    return isPending || (!isQuiet && (activity.timers.size > 0 || time - answered < ROWS_TIMEOUT_MS));
  };
  do {
    await new Promise((done) => nativeSetTimeout(done, POLL_MS));
    withNatives(() => {
      for (const [request, begun] of activity.inFlight) {
        if (begun >= start && begun - start < REQUEST_WITHIN_MS) requests.add(request);
      }
      isQuiet = allQuiet(options, start);
      isPending = [...requests].some((request) => activity.inFlight.has(request) || activity.polls.has(request));
      if (isPending) answered = now();
    });
  } while (goesOn());
  await observersHaveRun(); // that the end is out of view again
  return { changed: true, isPending };
};
/**
 * Whether scrolling a box does not move an element, as the button that leads back to the top. It is no row.
 * @param {any} element
 * @param {any} box
 */
const staysInView = (element, box) => {
  for (let node = element; node && node !== box; node = parentOf(node)) {
    if (/^(fixed|sticky)$/.test(styleOf(node).position)) return true;
  }
  return false;
};
/**
 * Rows that a box adds when its end is shown, and whether there may be more.
 * @param {any} box
 * @param {SnapshotOptions} options
 * @param {number} deadline
 * @returns {Promise<{ rows: Row[], isCut: boolean }>}
 */
const readGrowth = async (box, options, deadline) => {
  const boxPath = pathFromRoot(box);
  const known = new Set(withNatives(() => candidatesInList(box, options).map(({ candidate }) => rowKey(candidate))));
  /** @type {Row[]} */
  const rows = [];
  let isCut = true;
  await noteScroll();
  for (let batch = 0; batch < MAX_BATCHES && now() < deadline; batch++) {
    const { scrollHeight } = box;
    const { changed, isPending } = await showEnd(box, options, deadline);
    const before = rows.length;
    if (changed) withNatives(() => {
      for (const { path, candidate, element } of candidatesInList(box, options)) {
        const key = rowKey(candidate);
        if (known.has(key) || staysInView(element, box)) continue;
        known.add(key);
        rows.push({ ...candidate, path: `${boxPath}${SCROLLED}${box.scrollTop}${path}` });
      }
    });
    if (rows.length === before && box.scrollHeight <= scrollHeight) {
      isCut = isPending;
      break;
    }
    if (box.scrollHeight > scrollHeight) continue;
    // What is drawn follows the position: between top and end there is more.
    await scrollList(box, 0, options);
    const all = await readRows(box, options, deadline);
    return { rows: all, isCut: now() >= deadline || box.scrollHeight > (MAX_LIST_SCREENS + 1) * box.clientHeight };
  }
  await scrollList(box, 0, options);
  return { rows, isCut };
};
/**
 * Read on in lists that grow, and return as JSON their further rows as candidates, with their paths; the links of lists that do
 * not end or have many rows; the number of lists that were not read to their end; and what is stored now.
 * @param {SnapshotOptions} options
 */
const readOn = async (options) => {
  const boxes = withNatives(growingBoxes);
  const deadline = now() + READ_ON_MS;
  /** @type {{ rows: Row[], isCut: boolean }[]} */
  const further = [];
  for (const box of boxes) further.push(await readGrowth(box, options, deadline));
  return withNatives(() => {
    const cut = further.filter((list) => list.isCut).length;
    const result = { rows: [], paths: [], links: [], cut, storage: storageHashes() };
    const { rows, paths, links } = /** @type {Record<string, any[]>} */ (/** @type {any} */ (result));
    if (!further.some((list) => list.rows.length)) return stringify(result);
    const counts = new Map();
    for (const { kind, value, frame, role, name } of passOverPage(options).candidates) {
      const key = stringify([kind, value, role, name]);
      if (frame === 0) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    for (const list of further) {
      for (const { path, ...candidate } of list.rows) {
        if (list.isCut || list.rows.length > MAX_FURTHER_ROWS) {
          if (candidate.kind === "click" && candidate.target) links.push([candidate.target, candidate.name, false]);
          continue;
        }
        const key = stringify([candidate.kind, candidate.value, candidate.role, candidate.name]);
        const nth = counts.get(key) ?? 0;
        counts.set(key, nth + 1);
        rows.push(flattened({ ...candidate, nth, covered: false, place: paths.push(path) - 1 }));
      }
    }
    return stringify(result);
  });
};
