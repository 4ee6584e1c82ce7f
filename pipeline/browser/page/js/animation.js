// Provides `awaitsFrame`: whether a script waits for an animation frame. Fades, slides and layouts proceed frame by frame,
// and frames come late on a busy machine; between two of them no other activity shows that there is more to come.

const LATE_FRAME_MS = 1000; // pages that are not drawn get no frames
/** Time of the request by its id. @type {Map<number, number>} */
const pendingFrames = lasting(new Map());
const framesRun = [0, 0]; // times of the last two frames in which a script ran
const nativeCancelFrame = window.cancelAnimationFrame.bind(window);

window.requestAnimationFrame = function requestAnimationFrame(callback) {
  if (typeof callback !== "function") return nativeRequestFrame(callback); // throws the browser's own error
  const id = nativeRequestFrame((time) => {
    pendingFrames.delete(id);
    const began = now();
    if (began - framesRun[1] > 1) {
      framesRun[0] = framesRun[1];
      framesRun[1] = began;
    }
    callback.call(window, time);
  });
  pendingFrames.set(id, now());
  return id;
};
window.cancelAnimationFrame = function cancelAnimationFrame(id) {
  pendingFrames.delete(id);
  nativeCancelFrame(id);
};
/**
 * Whether a script waits for a frame and has not had two since the page changed. Games request frames for ever.
 * @param {number} time
 * @param {number} changed
 */
const awaitsFrame = (time, changed) => {
  if (framesRun[0] > changed) return false;
  for (const requested of pendingFrames.values()) if (time - requested < LATE_FRAME_MS) return true;
  return false;
};
