// Which timers does the page still owe us, and which must not change it between two looks?

const MAX_TIMER_NESTING = 3; // a timer set by a timer set by a timer: a poller, not a consequence of the action
const INTERVAL_ASIDE_MS = 1000; // intervals at least this long are clocks, carousels and pollers
const POLLER_ASIDE_MS = 500; // so are shorter ones, once the page has settled, and chains of timeouts
const NEVER_MS = 2 ** 31 - 1;
const pollers = lasting(new Set()); // ids of intervals that end when the page has settled

// An id that is as good as any other, of a timer that is not run.
const setAside = () => nativeSetTimeout(() => {}, NEVER_MS);
// Timers shorter than that are never set aside: libraries that wait for one of them would wait for ever.
const comesTooLate = (delay) =>
  window[KEY].guarded && delay >= POLLER_ASIDE_MS &&
  delay + (document.readyState === "complete" ? owedMs() : 0) > horizonMs;

window.setTimeout = function (callback, delay, ...args) {
  const nesting = activity.nesting + 1;
  if (comesTooLate(Number(delay) || 0)) return setAside();
  let id;
  const run = function (...values) {
    activity.timers.delete(id);
    const outer = activity.nesting;
    activity.nesting = nesting;
    try {
      return typeof callback === "function" ? callback.apply(this, values) : (0, eval)(String(callback));
    } finally {
      activity.nesting = outer;
    }
  };
  id = nativeSetTimeout(run, delay, ...args);
  const due = now() + (Number(delay) || 0);
  if (nesting <= MAX_TIMER_NESTING && due <= activity.since + horizonMs) activity.timers.set(id, due);
  return id;
};
window.clearTimeout = (id) => {
  activity.timers.delete(id);
  return nativeClearTimeout(id);
};

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
