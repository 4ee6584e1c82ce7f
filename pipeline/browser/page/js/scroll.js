// Provides `scrollBox`: scrolls the page, or the box around an element, by most of what it shows.

const SCROLL_SHARE = 0.8; // the rest stays in view, for orientation
/** @type {Record<string, [number, number]>} */
const DIRECTIONS = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] };

/**
 * @param {any} box
 * @param {boolean} sideways
 */
const canScroll = (box, sideways) => {
  const { overflowX, overflowY } = getComputedStyle(box);
  const overflow = sideways ? overflowX : overflowY;
  const room = sideways ? box.scrollWidth - box.clientWidth : box.scrollHeight - box.clientHeight;
  return room > 0 && (box === document.scrollingElement || overflow === "auto" || overflow === "scroll");
};
/**
 * Scroll, and return as JSON whether anything moved. `rung` is empty if the element is not on the page.
 * @param {string} direction
 * @param {RecordedAction | null} action Names the element inside the box; null: the page.
 * @param {SnapshotOptions} options
 */
const scrollBox = (direction, action, options) => withNatives(() => {
  const [x, y] = DIRECTIONS[direction];
  const found = action && (findInPlace(action, options, (name, recorded) => name === recorded, "exact") ?? searchPage(action, options));
  if (action && !found) return stringify({ rung: "", moved: false });
  noteAction();
  let box = found ? found[0] : mainScroller();
  while (found && box && !canScroll(box, x !== 0)) box = parentThroughRoots(box);
  box ??= mainScroller();
  const before = [box.scrollLeft, box.scrollTop];
  box.scrollBy({ left: x * SCROLL_SHARE * box.clientWidth, top: y * SCROLL_SHARE * box.clientHeight, behavior: "instant" });
  return stringify({ rung: found ? found[1] : "page", moved: box.scrollLeft !== before[0] || box.scrollTop !== before[1] });
});
