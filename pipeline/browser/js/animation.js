// Does a script wait for a frame? What fades, slides or is laid out does so step by step, and frames come late on a busy
// machine: between two of them nothing tells that there is more to come.

const LATE_FRAME_MS = 1000; // frames of what is not drawn never come
const frameWaits = lasting(new Map()); // request id -> when it was asked for
const framesRun = [0, 0]; // when the last two frames ran in which a script did something
const nativeCancelFrame = window.cancelAnimationFrame.bind(window);

window.requestAnimationFrame = function requestAnimationFrame(callback) {
  if (typeof callback !== "function") return nativeFrame(callback); // which says what is wrong
  const id = nativeFrame((time) => {
    frameWaits.delete(id);
    const began = now();
    if (began - framesRun[1] > 1) {
      framesRun[0] = framesRun[1];
      framesRun[1] = began;
    }
    callback.call(window, time);
  });
  frameWaits.set(id, now());
  return id;
};
window.cancelAnimationFrame = function cancelAnimationFrame(id) {
  frameWaits.delete(id);
  nativeCancelFrame(id);
};
// Whether a script waits for a frame, and has not had two since the page changed. Games ask for frames for ever.
const awaitsFrame = (time, changed) => {
  if (framesRun[0] > changed) return false;
  for (const asked of frameWaits.values()) if (time - asked < LATE_FRAME_MS) return true;
  return false;
};
