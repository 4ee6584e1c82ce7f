// Provides `modalOf` (the dialog that makes everything else inert) and `markCovered` (elements behind a backdrop).

const EDGE_PX = 5; // distance of the tested points from the edges of the window
/**
 * Whether an element covers its whole window.
 * @param {any} element
 */
const coversWindow = (element) => {
  const view = element.ownerDocument.defaultView;
  const { left, top, right, bottom } = element.getBoundingClientRect();
  const { position } = getComputedStyle(element);
  return (
    (position === "fixed" || position === "absolute") &&
    left <= 0 && top <= 0 && right >= view.innerWidth && bottom >= view.innerHeight
  );
};
/**
 * Points near the corners of a window.
 * @param {any} view
 * @returns {[number, number][]}
 */
const cornersOf = ({ innerWidth: width, innerHeight: height }) =>
  [[EDGE_PX, EDGE_PX], [width - EDGE_PX, EDGE_PX], [EDGE_PX, height - EDGE_PX], [width - EDGE_PX, height - EDGE_PX]];
const CLAIMED_MODAL = '[role=dialog][aria-modal="true"], [role=alertdialog][aria-modal="true"]';
/**
 * Elements of a document that match, also in its shadow roots.
 * @param {Document} doc
 * @param {string} selector
 * @returns {any[]}
 */
const inAllRoots = (doc, selector) =>
  [doc, ...rootsIn(doc.defaultView)].flatMap((root) => [...root.querySelectorAll(selector)]);
/**
 * The dialog in front of everything else in a document, or null.
 *
 * It is the one that matches `:modal`; of several, one that takes the pointer, since the browser makes those behind it
 * inert. Or one with `aria-modal` that is on top: its own middle is not covered, and the middle and the corners of the
 * window belong to the dialog or to a backdrop that covers the window.
 * @param {Document} doc
 * @returns {Element | null}
 */
const modalOf = (doc) => {
  const { innerWidth: width, innerHeight: height } = /** @type {Window} */ (doc.defaultView);
  const screen = { left: 0, top: 0, right: width, bottom: height };
  const takesMiddle = (/** @type {Element} */ dialog) => {
    const box = intersect(dialog.getBoundingClientRect(), screen);
    return !isEmpty(box) && takesPointer(dialog, (box.left + box.right) / 2, (box.top + box.bottom) / 2);
  };
  const modals = inAllRoots(doc, ":modal").reverse();
  if (modals.length) return modals.length > 1 ? modals.find(takesMiddle) ?? modals[0] : modals[0];
  const isOnTop = (/** @type {Element} */ dialog) => {
    if (dialog.closest("[inert], [aria-hidden=true]") || !dialog.checkVisibility(VISIBLE) || !takesMiddle(dialog)) return false;
    return [[width / 2, height / 2], ...cornersOf(doc.defaultView)].every(([x, y]) => {
      const top = elementAt(doc, x, y);
      return top !== null && (isWithin(top, dialog) || coversWindow(top));
    });
  };
  return inAllRoots(doc, CLAIMED_MODAL).reverse().find(isOnTop) ?? null;
};

/**
 * An element without a dialog role that takes the pointer from the whole page, or null: the backdrop of a tour, of an
 * invitation, of a drawer, of a dialog made of plain boxes. It is on top in at least two corners of the window, because a
 * drawer occupies the others.
 * @param {Document} doc
 * @returns {any}
 */
const backdropOf = (doc) => {
  const tops = cornersOf(doc.defaultView).map(([x, y]) => doc.elementFromPoint(x, y));
  return tops.find((top) => top && tops.filter((other) => other === top).length >= 2 && coversWindow(top)) ?? null;
};

/**
 * The parent of a node, out of shadow roots and frames; null at the root of this document.
 * @param {any} node
 * @returns {any}
 */
const parentThroughRoots = (node) => {
  const parent = unclobbered(node).parentNode;
  if (parent?.nodeType === 9) return parent === document ? null : parent.defaultView.frameElement;
  return parent?.nodeType === 11 ? parent.host : parent;
};
/**
 * The frame element in this document that contains an element of an inner document.
 * @param {any} element
 * @returns {any}
 */
const frameAround = (element) => {
  let frame = element;
  while (frame.ownerDocument !== document) frame = frame.ownerDocument.defaultView.frameElement;
  return frame;
};

/**
 * Mark the candidates behind a backdrop of this document. An element in view is behind it if the backdrop takes the pointer
 * from it. An element out of view is behind it if all elements in view of the same branch of the page are.
 * @param {Pass} pass
 */
const markCovered = ({ candidates, elements }) => {
  const backdrop = candidates.length ? backdropOf(document) : null;
  if (!backdrop) return;
  const screen = { left: 0, top: 0, right: window.innerWidth, bottom: window.innerHeight };
  /** Whether a branch, the child of an ancestor of the backdrop, is behind it. @type {Map<Element, boolean>} */
  const branches = new Map();
  const branchOf = (/** @type {Element} */ element) => {
    let branch = element;
    for (let up = parentThroughRoots(branch); up && !unclobbered(up).contains(backdrop); up = parentThroughRoots(up)) branch = up;
    return branch;
  };
  const inDocument = elements.map((element) => (element.ownerDocument === document ? element : frameAround(element)));
  const covered = inDocument.map((element) => {
    if (backdrop.contains(element) || element.contains(backdrop)) return false;
    const points = pointsOf(element, screen);
    if (!points.length) return null;
    const isCovered = !points.some(([x, y]) => takesPointer(element, x, y));
    const branch = branchOf(element);
    branches.set(branch, isCovered && branches.get(branch) !== false);
    return isCovered;
  });
  for (const [i, candidate] of candidates.entries()) {
    candidate.covered = covered[i] ?? branches.get(branchOf(inDocument[i])) === true;
  }
};
