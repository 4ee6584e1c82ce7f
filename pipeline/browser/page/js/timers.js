// Wraps the timers of the document: counts those that belong to an action, and suppresses those that would change the
// page between two snapshots.

const MAX_TIMER_NESTING = 3; // a timer set by a timer set by a timer is a poller, not a consequence of the action
const LONG_INTERVAL_MS = 1000; // intervals at least this long are clocks, carousels and pollers, and are suppressed
const POLLER_MS = 500; // shorter ones are cleared when the page has settled; so long timeouts in chains are suppressed
const NEVER_MS = 2 ** 31 - 1;
/** Ids of intervals that are cleared when the page has settled. @type {Set<number>} */
const pollers = lasting(new Set());

/** Timers that are set aside: when they are due, and what starts them. @type {Map<number, { due: number, start: () => void }>} */
const later = lasting(new Map());
/** Timers that were set aside and have been started, by the id that the page has. @type {Map<number, number>} */
const started = lasting(new Map());
/**
 * Set a timer aside; returns its id.
 * @param {number} due
 * @param {() => number} start
 * @returns {any}
 */
const setAside = (due, start) => {
  const id = nativeSetTimeout(() => {}, NEVER_MS);
  later.set(id, { due, start: () => started.set(id, start()) });
  return id;
};
/** @param {number | undefined} id */
const dropLater = (id) => {
  later.delete(/** @type {any} */ (id));
  return started.get(/** @type {any} */ (id)) ?? id;
};
/** Intervals that were set aside and run now, because the page waits. @type {Set<number>} */
const ticking = lasting(new Set());
/** @param {number} until */
const hasLaterTimers = (until) => ticking.size > 0 || [...later.values()].some(({ due }) => due <= until);
/** Start the timers that are due until a time. @param {number} until */
const startLaterTimers = (until) => {
  for (const [id, { due, start }] of [...later]) {
    if (due > until) continue;
    later.delete(id);
    start();
  }
};
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
  const ms = Number(delay) || 0;
  const due = now() + ms;
  /** @type {number} */
  let id;
  const run = /** @this {any} @param {any[]} values */ function (...values) {
    activity.timers.delete(id);
    later.delete(id);
    return runNested(nesting, () => (typeof callback === "function" ? callback.apply(this, values) : (0, eval)(String(callback))));
  };
  if (isBeyondHorizon(ms)) {
    return setAside(due, () => {
      id = nativeSetTimeout(run, due - now(), ...args);
      activity.timers.set(id, due);
      return id;
    });
  }
  id = nativeSetTimeout(run, delay, ...args);
  const counts = due <= activity.actionStart + horizonMs || belongsToLoading(ms);
  if (nesting <= MAX_TIMER_NESTING && counts) activity.timers.set(id, due);
  else later.set(id, { due, start: () => activity.timers.set(id, due) }); // it runs, and is awaited if the page waits
  return id;
};
window.clearTimeout = (id) => {
  const own = dropLater(id);
  activity.timers.delete(own);
  return nativeClearTimeout(own);
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
  const run = /** @this {any} @param {any[]} values */ function (...values) {
    activity.isInterval = true;
    try {
      callback.apply(this, values);
    } finally {
      activity.isInterval = false;
    }
  };
  const start = () => {
    const id = nativeSetInterval(typeof callback === "function" ? run : callback, period, ...args);
    activity.hasIntervals = true;
    if (window[KEY].guarded && length >= POLLER_MS) pollers.add(id);
    return id;
  };
  if (!window[KEY].guarded || length < LONG_INTERVAL_MS) return start();
  return setAside(now() + length, () => {
    const id = start();
    ticking.add(id);
    return id;
  });
};
window.clearInterval = (id) => {
  const own = dropLater(id);
  ticking.delete(/** @type {any} */ (own));
  nativeClearInterval(own);
};
/** Clear the timers that would change the settled page; those that were set aside never run. */
const clearPollers = () => {
  later.clear();
  ticking.clear();
  for (const id of pollers) nativeClearInterval(id);
  pollers.clear();
};
