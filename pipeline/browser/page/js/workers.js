// Wraps workers: a page waits for the messages of its workers, whose requests and computations it cannot observe.

const WORKER_START_MS = 1000; // time after its start during which a worker may send its first message
const WORKER_REPLY_MS = 250; // time after a message, in either direction, during which another one may follow
const MAX_WORKER_WAITS = 20; // for one worker after one action or load: some exchange messages for ever

const NativeWorker = window.Worker;
/**
 * Wait for a worker; returns a function that extends the wait.
 * @param {Worker} worker
 * @returns {(ms: number) => void}
 */
const awaitWorker = (worker) => {
  let waits = 0;
  let since = -1;
  const wait = (/** @type {number} */ ms) => {
    if (since !== activity.actionStart) [since, waits] = [activity.actionStart, 0];
    waits += 1;
    // `isQuiet` drops a timer only when it is overdue for `DROPPED_TIMER_MS`.
    if (waits <= MAX_WORKER_WAITS) activity.timers.set(worker, now() + ms - DROPPED_TIMER_MS);
    else activity.timers.delete(worker);
  };
  apply(nativeAddListener, worker, ["message", () => wait(WORKER_REPLY_MS), { passive: true }]);
  apply(nativeAddListener, worker, ["error", () => activity.timers.delete(worker), { passive: true }]);
  wait(WORKER_START_MS);
  return wait;
};
if (NativeWorker) {
  /** @type {WeakMap<Worker, (ms: number) => void>} */
  const waits = lasting(new WeakMap());
  window.Worker = class Worker extends NativeWorker {
    /** @param {ConstructorParameters<typeof NativeWorker>} args */
    constructor(...args) {
      super(...args);
      waits.set(this, awaitWorker(this));
    }
    /** @param {any[]} args */
    postMessage(...args) {
      super.postMessage(.../** @type {[any]} */ (args));
      waits.get(this)?.(WORKER_REPLY_MS);
    }
    terminate() {
      super.terminate();
      activity.timers.delete(this);
    }
  };
}
