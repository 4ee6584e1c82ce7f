// Counts the delays of interest invokers (`interestfor`) as timers: what they show opens and closes some time after pointer or
// focus came or left.

const INTEREST_DELAY_MS = { start: 500, end: 250 }; // of the value `normal`
const MAX_INTEREST_DELAY_MS = 3_000; // nobody waits that long for a hint
const INTEREST = "interest"; // id in `activity.timers`
const INVOKERS = new Set(["a", "area", "button"]);
/** The last invoker that pointer or focus came to. @type {any} */
let lastInvoker = null;

/**
 * Whether something opens when a person points at an element for a while.
 * @param {any} element
 * @param {string} tag
 */
const isInvoker = (element, tag) => INVOKERS.has(tag) && element.hasAttribute("interestfor");
/** @param {"start" | "end"} edge */
const awaitInterest = (edge) => {
  const { interestDelayStart, interestDelayEnd } = getComputedStyle(lastInvoker);
  const delay = edge === "start" ? interestDelayStart : interestDelayEnd;
  const ms = delay === "normal" ? INTEREST_DELAY_MS[edge] : 1000 * parseFloat(delay);
  if (ms <= MAX_INTEREST_DELAY_MS) activity.timers.set(INTEREST, now() + ms);
};
/**
 * Note where pointer or focus are now.
 * @param {any[]} path The innermost element and those around it; empty outside of the window.
 */
const noteInterest = (path) => {
  const invoker = path.find((node) => node.interestForElement);
  if (!invoker && !lastInvoker) return;
  activity.timers.delete(INTEREST);
  const isOpen = lastInvoker?.matches(":interest-source");
  if (isOpen && !path.includes(lastInvoker) && !path.includes(lastInvoker.interestForElement)) awaitInterest("end");
  if (!invoker) return;
  lastInvoker = invoker;
  if (!invoker.matches(":interest-source")) awaitInterest("start");
};
if ("InterestEvent" in window) {
  const options = { capture: true, passive: true };
  for (const type of ["mouseover", "focusin"]) window.addEventListener(type, (event) => noteInterest(event.composedPath()), options);
  for (const type of /** @type {const} */ (["mouseout", "focusout"])) {
    // Otherwise the event of the next element follows.
    window.addEventListener(type, (event) => event.relatedTarget ?? noteInterest([]), options);
  }
  for (const type of ["interest", "loseinterest"]) {
    window.addEventListener(type, () => activity.timers.delete(INTEREST), options);
  }
}
