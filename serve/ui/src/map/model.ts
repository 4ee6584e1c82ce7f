/** A map in typed arrays, with its discovery tree; everything here is a pure function of the service's answer. */

import type { GraphAnswer } from "../types";

export const INHERITED = 1;
export const OPENS_TAB = 2;
export const STATE_CHANGING = 4;

export interface MapModel {
  answer: GraphAnswer;
  states: number;
  depth: Int32Array;
  source: Int32Array;
  target: Int32Array;
  kind: Uint8Array;
  flags: Uint8Array;
  /** By state the state from which it was first reached; -1 for the start and for what no edge reaches. */
  parent: Int32Array;
  /** By state the edge from its parent; -1 if there is none. */
  parentEdge: Int32Array;
  outgoing: Adjacency;
  incoming: Adjacency;
  indexOf: Map<string, number>;
  maxDepth: number;
  /** The end that most titles of the site share, such as “ · Shop”; empty if there is none. */
  titleEnd: string;
}

/** Edges by state, as one array and the places where the edges of each state begin. */
export interface Adjacency {
  starts: Int32Array;
  edges: Int32Array;
}

export function edgesAt(adjacency: Adjacency, state: number): Int32Array {
  return adjacency.edges.subarray(adjacency.starts[state]!, adjacency.starts[state + 1]!);
}

export function buildModel(answer: GraphAnswer): MapModel {
  const states = answer.states.id.length;
  const depth = Int32Array.from(answer.states.depth);
  const source = Int32Array.from(answer.edges.source);
  const target = Int32Array.from(answer.edges.target);
  const flags = Uint8Array.from(answer.edges.flags);
  const { parent, parentEdge } = discoveryTree(states, depth, source, target, flags);
  return {
    answer,
    states,
    depth,
    source,
    target,
    kind: Uint8Array.from(answer.edges.kind),
    flags,
    parent,
    parentEdge,
    outgoing: adjacencyOf(source, states),
    incoming: adjacencyOf(target, states),
    indexOf: new Map(answer.states.id.map((id, index) => [id, index])),
    maxDepth: depth.reduce((most, each) => Math.max(most, each), 0),
    titleEnd: sharedTitleEnd(answer.states.title),
  };
}

function adjacencyOf(ends: Int32Array, states: number): Adjacency {
  const starts = new Int32Array(states + 1);
  for (const state of ends) starts[state + 1]!++;
  for (let state = 0; state < states; state++) starts[state + 1]! += starts[state]!;
  const next = starts.slice();
  const edges = new Int32Array(ends.length);
  ends.forEach((state, edge) => (edges[next[state]!++] = edge));
  return { starts, edges };
}

/** The parent of a state is the first state of a smaller depth with a walked edge to it, else with an inherited one. */
function discoveryTree(
  states: number,
  depth: Int32Array,
  source: Int32Array,
  target: Int32Array,
  flags: Uint8Array,
): { parent: Int32Array; parentEdge: Int32Array } {
  const parent = new Int32Array(states).fill(-1);
  const parentEdge = new Int32Array(states).fill(-1);
  for (const wanted of [0, INHERITED]) {
    for (let edge = 0; edge < source.length; edge++) {
      const from = source[edge]!;
      const to = target[edge]!;
      if (parent[to] === -1 && (flags[edge]! & INHERITED) === wanted && depth[from]! < depth[to]!) {
        parent[to] = from;
        parentEdge[to] = edge;
      }
    }
  }
  return { parent, parentEdge };
}

/** States whose title, URL or id contains all words, in their order. */
export function matchingStates(model: MapModel, text: string): number[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const { id, url, title } = model.answer.states;
  const found: number[] = [];
  for (let state = 0; state < model.states; state++) {
    const searched = `${title[state]!.slice(0, 1000)} ${url[state]!.slice(0, 2000)} ${id[state]!}`.toLowerCase();
    if (words.every((word) => searched.includes(word))) found.push(state);
  }
  return found;
}

/** The title of a state without the end that most titles share; its URL if it has no title. */
export function titleOf(model: MapModel, state: number): string {
  const title = model.answer.states.title[state]!.trim();
  const short = model.titleEnd && title.endsWith(model.titleEnd) ? title.slice(0, -model.titleEnd.length) : title;
  return short.trim() || title || model.answer.states.url[state]!;
}

const SEPARATED_END = /\s[·|–—:•»-]\s[^·|–—•»]{1,60}$/;

function sharedTitleEnd(titles: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const title of titles) {
    const end = SEPARATED_END.exec(title.trim().slice(-120))?.[0];
    if (end) counts.set(end, (counts.get(end) ?? 0) + 1);
  }
  const [end, count] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? ["", 0];
  return count > 0.5 * titles.length && count > 2 ? end : "";
}
