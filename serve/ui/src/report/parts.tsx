/** What several reports share: numbers, sections, sheets of images. */

import type { ComponentChildren } from "preact";

import { ServiceImage } from "../parts/service_image";
import { line, number } from "../words";

export function Section({ title, note, children }: { title: string; note?: string; children: ComponentChildren }) {
  return (
    <section class="report-section" aria-label={title}>
      <h2>{title}</h2>
      {note && <p class="muted">{note}</p>}
      {children}
    </section>
  );
}

/** Numbers, or texts of them, with what they count, of one and of several; those that are 0 are left out. */
export function Numbers({ items }: { items: readonly [value: number | string, one: string, many?: string][] }) {
  return (
    <ul class="numbers">
      {items
        .filter(([value]) => value !== "" && value !== 0)
        .map(([value, one, many = one]) => (
          <li key={one}>
            <strong>{typeof value === "number" ? number(value) : value}</strong> {value === 1 ? one : many}
          </li>
        ))}
    </ul>
  );
}

export function More({ left, where }: { left: number; where: string }) {
  return left > 0 ? (
    <p class="muted">
      and {number(left)} more, see <code>{where}</code>
    </p>
  ) : null;
}

interface Picture {
  image: string | null;
  caption: string;
  note: string;
  /** In place of an image that there is not. */
  missing?: string;
}

export function Sheet({ pictures, onChoose }: { pictures: readonly Picture[]; onChoose?: (at: number) => void }) {
  return (
    <ul class="sheet">
      {pictures.map(({ image, caption, note, missing }, at) => {
        const figure = (
          <figure>
            <ServiceImage path={image} alt="" missing={missing ?? "No screenshot"} />
            <figcaption>
              <span dir="auto">{line(caption, 90)}</span>
              <span class="muted">{line(note, 90)}</span>
            </figcaption>
          </figure>
        );
        return (
          <li key={at}>
            {onChoose ? (
              <button type="button" onClick={() => onChoose(at)} title="Show it on the map">
                {figure}
              </button>
            ) : (
              figure
            )}
          </li>
        );
      })}
    </ul>
  );
}
