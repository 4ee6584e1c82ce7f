// Provides `waitUntilDrawn`: charts draw step by step on canvases, without DOM mutations.

const DRAWING_CAP_MS = 1500; // a game never stops drawing
const DRAWING_STEP_MS = 100;
const MAX_CANVASES = 20;
/** Width and height of the copies, in pixels. @type {[number, number]} */
const COPY_SIZE = [64, 40];

/** @param {Element} element */
const isInWindow = (element) => {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.bottom > 0 && box.top < window.innerHeight && box.right > 0 && box.left < window.innerWidth;
};
/** Pixels of a small copy of each canvas in view; nothing for a canvas that holds images of other origins. */
const canvasPixels = () => {
  let pixels = "";
  for (const canvas of [...document.querySelectorAll("canvas")].filter(isInWindow).slice(0, MAX_CANVASES)) {
    try {
      const brush = /** @type {OffscreenCanvasRenderingContext2D} */ (
        new OffscreenCanvas(...COPY_SIZE).getContext("2d", { willReadFrequently: true })
      );
      brush.drawImage(canvas, 0, 0, ...COPY_SIZE);
      pixels += brush.getImageData(0, 0, ...COPY_SIZE).data.join();
    } catch {
      continue; // the pixels cannot be read
    }
  }
  return pixels;
};
/** Wait until the canvases in view stay the same, at most `DRAWING_CAP_MS`. */
const waitUntilDrawn = async () => {
  const start = now();
  let before = withNatives(canvasPixels);
  while (before && now() - start < DRAWING_CAP_MS) {
    await new Promise((resolve) => nativeSetTimeout(resolve, DRAWING_STEP_MS));
    const after = withNatives(canvasPixels);
    if (after === before) break;
    before = after;
  }
  return null;
};
