// Which timers does the page still owe us, and which must not change it between two looks?

const MAX_TIMER_NESTING = 3; // a timer set by a timer set by a timer: a poller, not a consequence of the action
const INTERVAL_ASIDE_MS = 1000; // intervals at least this long are clocks, carousels and pollers
const POLLER_ASIDE_MS = 500; // so are shorter ones, once the page has settled, and chains of timeouts
const NEVER_MS = 2 ** 31 - 1;
const pollers = lasting(new Set()); // ids of intervals that end when the page has settled

// An id that is as good as any other, of a timer that is not run.
const setAside = () => nativeSetTimeout(() => {}, NEVER_MS);
// A page that takes seconds to come up sets timers on its way: what they bring is a part of it.
const belongsToLoading = (delay) => delay <= horizonMs && isArriving();
// Timers shorter than that are never set aside: libraries that wait for one of them would wait for ever.
const comesTooLate = (delay) =>
  window[KEY].guarded && delay >= POLLER_ASIDE_MS && !belongsToLoading(delay) &&
  delay + (document.readyState === "complete" ? owedMs() : 0) > horizonMs;

// What a timer sets in its turn is nested in it.
const runNested = (nesting, work) => {
  const outer = activity.nesting;
  activity.nesting = nesting;
  try {
    return work();
  } finally {
    activity.nesting = outer;
  }
};

window.setTimeout = function (callback, delay, ...args) {
  const nesting = activity.nesting + 1;
  if (comesTooLate(Number(delay) || 0)) return setAside();
  let id;
  const run = function (...values) {
    activity.timers.delete(id);
    return runNested(nesting, () => (typeof callback === "function" ? callback.apply(this, values) : (0, eval)(String(callback))));
  };
  id = nativeSetTimeout(run, delay, ...args);
  const due = now() + (Number(delay) || 0);
  const isOwed = due <= activity.since + horizonMs || belongsToLoading(Number(delay) || 0);
  if (nesting <= MAX_TIMER_NESTING && isOwed) activity.timers.set(id, due);
  return id;
};
window.clearTimeout = (id) => {
  activity.timers.delete(id);
  return nativeClearTimeout(id);
};

// What is put off until the browser has nothing else to do comes late on a busy machine.
const nativeIdle = window.requestIdleCallback?.bind(window);
const nativeCancelIdle = window.cancelIdleCallback?.bind(window);
if (nativeIdle) {
  window.requestIdleCallback = function requestIdleCallback(callback, options) {
    if (typeof callback !== "function") return nativeIdle(callback, options); // which says what is wrong
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

window.setInterval = function (callback, period, ...args) {
  const length = Number(period) || 0;
  if (window[KEY].guarded && length >= INTERVAL_ASIDE_MS) return setAside();
  const id = nativeSetInterval(callback, period, ...args);
  if (window[KEY].guarded && length >= POLLER_ASIDE_MS) pollers.add(id);
  return id;
};
const setPollersAside = () => {
  for (const id of pollers) nativeClearInterval(id);
  pollers.clear();
};
