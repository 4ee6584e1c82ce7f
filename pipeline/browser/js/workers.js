// Is a worker about to say something that the page waits for? What a worker loads and computes, the page does not see.

const WORKER_STARTS_MS = 1000; // so long after its start a worker is waited for until it says something
const WORKER_ANSWERS_MS = 250; // so long after anything that was said, on either side
const MAX_WAITS = 20; // for one worker after one action or load: some talk for ever

const NativeWorker = window.Worker;
const waitsForWorker = (worker) => {
  let waits = 0;
  let since = -1;
  // A timer that never comes counts until a quarter of a second after it was due, see `isQuiet`.
  const wait = (ms) => {
    if (since !== activity.since) [since, waits] = [activity.since, 0];
    waits += 1;
    if (waits <= MAX_WAITS) activity.timers.set(worker, now() + ms - 250);
    else activity.timers.delete(worker);
  };
  apply(nativeListen, worker, ["message", () => wait(WORKER_ANSWERS_MS), { passive: true }]);
  apply(nativeListen, worker, ["error", () => activity.timers.delete(worker), { passive: true }]);
  wait(WORKER_STARTS_MS);
  return wait;
};
if (NativeWorker) {
  const waits = lasting(new WeakMap()); // worker -> how to wait for it
  window.Worker = class Worker extends NativeWorker {
    constructor(...args) {
      super(...args);
      waits.set(this, waitsForWorker(this));
    }
    postMessage(...args) {
      super.postMessage(...args);
      waits.get(this)?.(WORKER_ANSWERS_MS);
    }
    terminate() {
      super.terminate();
      activity.timers.delete(this);
    }
  };
}
