// Wraps the timers of the document: counts those that belong to an action, and suppresses those that would change the
// page between two snapshots.

const MAX_TIMER_NESTING = 3; // a timer set by a timer set by a timer is a poller, not a consequence of the action
const LONG_INTERVAL_MS = 1000; // intervals at least this long are clocks, carousels and pollers, and are suppressed
const POLLER_MS = 500; // shorter ones are cleared when the page has settled; so long timeouts in chains are suppressed
const NEVER_MS = 2 ** 31 - 1;
/** Ids of intervals that are cleared when the page has settled. @type {Set<number>} */
const pollers = lasting(new Set());

/** A valid id of a timer that never runs. @returns {any} */
const suppressedTimer = () => nativeSetTimeout(() => {}, NEVER_MS);
/** Whether a timer belongs to loading: a page that takes seconds to load sets timers meanwhile. @param {number} delay */
const belongsToLoading = (delay) => delay <= horizonMs && isReceiving();
/**
 * Whether a timer is due after the horizon. Shorter ones than `POLLER_MS` are never suppressed: libraries that wait for
 * one of them would wait for ever.
 * @param {number} delay
 */
const isBeyondHorizon = (delay) =>
  window[KEY].guarded && delay >= POLLER_MS && !belongsToLoading(delay) &&
  delay + (document.readyState === "complete" ? msSinceConsequence() : 0) > horizonMs;

/**
 * Run a timer callback; timers that it sets are nested in it.
 * @template T
 * @param {number} nesting
 * @param {() => T} work
 * @returns {T}
 */
const runNested = (nesting, work) => {
  const outer = activity.nesting;
  activity.nesting = nesting;
  try {
    return work();
  } finally {
    activity.nesting = outer;
  }
};

/** @type {any} */ (window).setTimeout = function (
  /** @type {any} */ callback, /** @type {any} */ delay, /** @type {any[]} */ ...args
) {
  const nesting = activity.nesting + 1;
  if (isBeyondHorizon(Number(delay) || 0)) return suppressedTimer();
  /** @type {number} */
  let id;
  const run = /** @this {any} @param {any[]} values */ function (...values) {
    activity.timers.delete(id);
    return runNested(nesting, () => (typeof callback === "function" ? callback.apply(this, values) : (0, eval)(String(callback))));
  };
  id = nativeSetTimeout(run, delay, ...args);
  const due = now() + (Number(delay) || 0);
  const counts = due <= activity.actionStart + horizonMs || belongsToLoading(Number(delay) || 0);
  if (nesting <= MAX_TIMER_NESTING && counts) activity.timers.set(id, due);
  return id;
};
window.clearTimeout = (id) => {
  activity.timers.delete(id);
  return nativeClearTimeout(id);
};

// On a busy machine idle callbacks come late.
const nativeIdle = window.requestIdleCallback?.bind(window);
const nativeCancelIdle = window.cancelIdleCallback?.bind(window);
if (nativeIdle) {
  window.requestIdleCallback = function requestIdleCallback(callback, options) {
    if (typeof callback !== "function") return nativeIdle(callback, options); // throws the browser's own error
    const nesting = activity.nesting + 1;
    const id = nativeIdle((deadline) => {
      activity.timers.delete(`idle ${id}`);
      runNested(nesting, () => callback.call(window, deadline));
    }, options);
    if (nesting <= MAX_TIMER_NESTING) activity.timers.set(`idle ${id}`, now() + horizonMs);
    return id;
  };
  window.cancelIdleCallback = function cancelIdleCallback(id) {
    activity.timers.delete(`idle ${id}`);
    nativeCancelIdle(id);
  };
}

/** @type {any} */ (window).setInterval = function (
  /** @type {any} */ callback, /** @type {any} */ period, /** @type {any[]} */ ...args
) {
  const length = Number(period) || 0;
  if (window[KEY].guarded && length >= LONG_INTERVAL_MS) return suppressedTimer();
  const run = /** @this {any} @param {any[]} values */ function (...values) {
    activity.isInterval = true;
    try {
      callback.apply(this, values);
    } finally {
      activity.isInterval = false;
    }
  };
  const id = nativeSetInterval(typeof callback === "function" ? run : callback, period, ...args);
  activity.hasIntervals = true;
  if (window[KEY].guarded && length >= POLLER_MS) pollers.add(id);
  return id;
};
/** Clear the intervals that would change the settled page. */
const clearPollers = () => {
  for (const id of pollers) nativeClearInterval(id);
  pollers.clear();
};
