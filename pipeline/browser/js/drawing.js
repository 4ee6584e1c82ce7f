// Have charts finished drawing themselves? They do so bit by bit, on canvases, where no mutation tells.

const DRAWING_CAP_MS = 1500; // a game never finishes
const DRAWING_STEP_MS = 100;
const MAX_CANVASES = 20;
const SAMPLE = [64, 40]; // pixels

const inView = (element) => {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.bottom > 0 && box.top < window.innerHeight && box.right > 0 && box.left < window.innerWidth;
};
// A small copy of everything that is drawn in view; nothing where there is none, or where other sites' images are in it.
const drawing = () => {
  let pixels = "";
  for (const canvas of [...document.querySelectorAll("canvas")].filter(inView).slice(0, MAX_CANVASES)) {
    try {
      const brush = new OffscreenCanvas(...SAMPLE).getContext("2d", { willReadFrequently: true });
      brush.drawImage(canvas, 0, 0, ...SAMPLE);
      pixels += brush.getImageData(0, 0, ...SAMPLE).data.join();
    } catch {
      continue; // what may not be read cannot be watched
    }
  }
  return pixels;
};
const drawn = async () => {
  const start = now();
  let before = withNatives(drawing);
  while (before && now() - start < DRAWING_CAP_MS) {
    await new Promise((resolve) => nativeSetTimeout(resolve, DRAWING_STEP_MS));
    const after = withNatives(drawing);
    if (after === before) break;
    before = after;
  }
  return null;
};
