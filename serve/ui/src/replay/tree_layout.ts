/** Positions of the states of a search: depth from left to right, each state beside the middle of those below it. */

import type { TreeNode } from "./file";

export const CARD = { width: 150, height: 136 };
const GAP = { across: 56, down: 20 };
const MARGIN = 16;

export interface TreeLayout {
  /** Left edge of each state, in pixels. */
  left: number[];
  /** Upper edge of each state. */
  top: number[];
  width: number;
  height: number;
  /** States below each, in the order of their numbers. */
  children: number[][];
}

/** Parents have smaller numbers than the states below them, so no tree is walked: its depth is that of a file of others. */
export function layOutTree(nodes: readonly TreeNode[]): TreeLayout {
  const children: number[][] = nodes.map(() => []);
  const depth: number[] = [];
  for (const [number, { parent }] of nodes.entries()) {
    depth.push(parent === null ? 0 : depth[parent]! + 1);
    if (parent !== null) children[parent]!.push(number);
  }
  // Rows of states without any below them, in the order of a walk through the tree.
  const order: number[] = [];
  const waiting = nodes.flatMap(({ parent }, number) => (parent === null ? [number] : [])).reverse();
  while (waiting.length) {
    const number = waiting.pop()!;
    order.push(number);
    waiting.push(...children[number]!.toReversed());
  }
  const row: number[] = [];
  let rows = 0;
  for (const number of order) if (!children[number]!.length) row[number] = rows++;
  for (let number = nodes.length - 1; number >= 0; number--) {
    const below = children[number]!;
    if (below.length) row[number] = (row[below[0]!]! + row[below.at(-1)!]!) / 2;
  }
  const deepest = depth.reduce((most, each) => Math.max(most, each), 0);
  return {
    left: depth.map((each) => MARGIN + each * (CARD.width + GAP.across)),
    top: row.map((each) => MARGIN + each * (CARD.height + GAP.down)),
    width: 2 * MARGIN + (deepest + 1) * (CARD.width + GAP.across) - GAP.across,
    height: 2 * MARGIN + rows * (CARD.height + GAP.down) - GAP.down,
    children,
  };
}
