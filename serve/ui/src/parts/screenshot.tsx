/** The screenshot of a state with the boxes of its elements. */

import { useState } from "preact/hooks";

import { ServiceImage } from "./service_image";
import type { Box } from "../types";

export interface Marked {
  key: number;
  box: Box;
  label: string;
  /** How strongly the box is filled, from 0 to 1; absent: it is outlined. */
  heat?: number;
}

interface Props {
  path: string | null;
  alt: string;
  /** Pixels of the screenshot per CSS pixel of the page. */
  scale: number;
  marks: readonly Marked[];
  /** The mark that something points to; -1: none. */
  pointed: number;
  onPoint: (key: number) => void;
  onChoose: (key: number) => void;
}

export function Screenshot({ path, alt, scale, marks, pointed, onPoint, onChoose }: Props) {
  const [size, setSize] = useState<{ path: string | null; width: number; height: number } | null>(null);
  const page = size?.path === path && size ? { width: size.width / scale, height: size.height / scale } : null;
  return (
    <div class="screenshot">
      <ServiceImage
        path={path}
        alt={alt}
        onLoad={(image) => setSize({ path, width: image.naturalWidth, height: image.naturalHeight })}
      />
      {page && (
        // The list of elements beside it holds the same for keyboards and screen readers.
        <div class="boxes" aria-hidden="true" onMouseLeave={() => onPoint(-1)}>
          {marks
            .filter((mark) => mark.box.y < page.height && mark.box.x < page.width)
            .map((mark) => (
              <div
                key={mark.key}
                class={`box ${mark.key === pointed ? "box-pointed" : ""} ${mark.heat === undefined ? "" : "box-heat"}`}
                style={{ ...percent(mark.box, page), ...(mark.heat === undefined ? {} : { opacity: 0.15 + 0.6 * mark.heat }) }}
                title={mark.label}
                onMouseEnter={() => onPoint(mark.key)}
                onClick={() => onChoose(mark.key)}
              />
            ))}
        </div>
      )}
    </div>
  );
}

function percent(box: Box, page: { width: number; height: number }) {
  const left = Math.max(0, box.x);
  const top = Math.max(0, box.y);
  const right = Math.min(page.width, box.x + box.width);
  const bottom = Math.min(page.height, box.y + box.height);
  return {
    left: `${(100 * left) / page.width}%`,
    top: `${(100 * top) / page.height}%`,
    width: `${(100 * Math.max(0, right - left)) / page.width}%`,
    height: `${(100 * Math.max(0, bottom - top)) / page.height}%`,
  };
}
