/** A list that shows its first items, and all when it is asked. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { number } from "../words";

interface Props<T> {
  items: readonly T[];
  limit: number;
  label: string;
  children: (item: T, index: number) => ComponentChildren;
}

export function Limited<T>({ items, limit, label, children }: Props<T>) {
  const [all, setAll] = useState(false);
  const shown = all ? items : items.slice(0, limit);
  return (
    <>
      <ul class="list" aria-label={label}>
        {shown.map(children)}
      </ul>
      {shown.length < items.length && (
        <button type="button" class="quiet more" onClick={() => setAll(true)}>
          Show all {number(items.length)}
        </button>
      )}
    </>
  );
}
