/** Which edges are drawn between which places. */

import type { Layout } from "./layout";
import { INHERITED, type MapModel } from "./model";

/** Kinds of action that are drawn alike; their colours are `--edge-NAME` in the style sheet. */
export const KIND_GROUPS: Record<string, string> = {
  click: "click",
  hover: "hover",
  focus: "hover",
  input: "type",
  select: "type",
  submit: "type",
  press: "type",
  dblclick: "pointer",
  contextmenu: "pointer",
  goto: "load",
};

/** Up to this number of walked edges all are drawn at first; of more, only how each state was found. */
const FEW_EDGES = 400;

/** Whether a map is drawn with all walked edges unless something else is asked for. */
export function drawsAllEdges(model: MapModel): boolean {
  return model.flags.filter((flags) => !(flags & INHERITED)).length <= FEW_EDGES;
}

export interface DrawnEdges {
  from: Int32Array;
  to: Int32Array;
  /** An edge of the map that is drawn here; several may fall together. */
  edge: Int32Array;
}

export interface EdgeFilter {
  /** Draw all edges, not only the discovery tree. */
  all: boolean;
  inherited: boolean;
  /** Kinds of action that are left out. */
  hiddenKinds: ReadonlySet<string>;
}

export function drawnEdges(model: MapModel, layout: Layout, filter: EdgeFilter): DrawnEdges {
  const hidden = model.answer.kinds.map((kind) => filter.hiddenKinds.has(kind));
  const from: number[] = [];
  const to: number[] = [];
  const kept: number[] = [];
  const seen = new Set<number>();
  const places = layout.places.length;
  const add = (edge: number) => {
    const start = layout.placeOf[model.source[edge]!]!;
    const end = layout.placeOf[model.target[edge]!]!;
    if (start < 0 || end < 0 || start === end || hidden[model.kind[edge]!]) return;
    const key = (start * places + end) * 16 + model.kind[edge]!;
    if (seen.has(key)) return;
    seen.add(key);
    from.push(start);
    to.push(end);
    kept.push(edge);
  };
  for (const edge of model.parentEdge) if (edge >= 0) add(edge);
  if (filter.all) {
    for (let edge = 0; edge < model.source.length; edge++) {
      if (filter.inherited || !(model.flags[edge]! & INHERITED)) add(edge);
    }
  }
  return { from: Int32Array.from(from), to: Int32Array.from(to), edge: Int32Array.from(kept) };
}
