/** The visible part of the map: `x`, `y` is the point in the middle of the view, `scale` is pixels per unit. */

export interface Camera {
  x: number;
  y: number;
  scale: number;
}

export const MAX_SCALE = 2.2;
/** A small map is not blown up beyond this. */
const MAX_FIT_SCALE = 1.15;

export interface Bounds {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export function fitCamera(bounds: Bounds, width: number, height: number): Camera {
  const margin = Math.min(60, width * 0.06);
  const scale = Math.min(
    (width - 2 * margin) / Math.max(1, bounds.right - bounds.left),
    (height - 2 * margin - 30) / Math.max(1, bounds.bottom - bounds.top),
    MAX_FIT_SCALE,
  );
  return { x: (bounds.left + bounds.right) / 2, y: (bounds.top + bounds.bottom) / 2 - 15 / scale, scale };
}

/** Zoom by a factor around a point of the view, in pixels from its middle. */
export function zoomAt(camera: Camera, factor: number, dx: number, dy: number, least: number): Camera {
  const scale = Math.min(MAX_SCALE, Math.max(least, camera.scale * factor));
  return {
    x: camera.x + dx / camera.scale - dx / scale,
    y: camera.y + dy / camera.scale - dy / scale,
    scale,
  };
}

export function between(from: Camera, to: Camera, share: number): Camera {
  const eased = 1 - (1 - share) ** 3;
  return {
    x: from.x + (to.x - from.x) * eased,
    y: from.y + (to.y - from.y) * eased,
    scale: from.scale * (to.scale / from.scale) ** eased,
  };
}
