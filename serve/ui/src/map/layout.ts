/**
 * Positions of states: bands by depth from left to right, rows within a band.
 *
 * Positions are a pure function of the map: a band lists its states by the position of their parents in the discovery
 * tree, then by URL and id, and is filled column by column. The height of all bands is the one that makes the whole map
 * about as wide as a screen. A group of alike pages that is collapsed takes one place.
 */

import type { MapModel } from "./model";

/** Size of a state in units of the map: the shape of its screenshot. */
export const CARD_WIDTH = 160;
export const CARD_HEIGHT = 104;
const COLUMN = CARD_WIDTH + 36;
const ROW = CARD_HEIGHT + 52;
const BAND_GAP = 190;
const ASPECT = 1.7;

export interface Layout {
  /** What is drawn: a state, or the first state of a collapsed group. */
  places: Int32Array;
  /** Number of states at each place. */
  counts: Int32Array;
  /** Centre of each place. */
  x: Float64Array;
  y: Float64Array;
  /** By state the place where it is; -1: it is filtered out. */
  placeOf: Int32Array;
  bands: { depth: number; x: number; width: number; states: number }[];
  width: number;
  height: number;
}

export interface Shown {
  /** Whether a state is shown. */
  keep: (state: number) => boolean;
  /** Groups that are drawn as one place. */
  collapsed: (group: number) => boolean;
}

export function layOut(model: MapModel, shown: Shown): Layout {
  const bands = orderedBands(model, shown);
  const rows = bestRows(bands.map((band) => band.length));
  const total = bands.reduce((sum, band) => sum + band.length, 0);
  const layout: Layout = {
    places: new Int32Array(total),
    counts: new Int32Array(total),
    x: new Float64Array(total),
    y: new Float64Array(total),
    placeOf: new Int32Array(model.states).fill(-1),
    bands: [],
    width: 0,
    height: 0,
  };
  let place = 0;
  let left = 0;
  for (const band of bands) {
    const columns = Math.ceil(band.length / rows);
    const perColumn = Math.ceil(band.length / Math.max(1, columns));
    let members = 0;
    band.forEach((unit, at) => {
      const column = Math.floor(at / perColumn);
      layout.places[place] = unit[0]!;
      layout.counts[place] = unit.length;
      layout.x[place] = left + column * COLUMN + CARD_WIDTH / 2;
      layout.y[place] = ((at % perColumn) - (perColumn - 1) / 2) * ROW;
      for (const state of unit) layout.placeOf[state] = place;
      members += unit.length;
      place++;
    });
    const width = Math.max(1, columns) * COLUMN - (COLUMN - CARD_WIDTH);
    if (band.length) {
      layout.bands.push({ depth: model.depth[band[0]![0]!]!, x: left, width, states: members });
      left += width + BAND_GAP;
    }
  }
  layout.width = Math.max(CARD_WIDTH, left - BAND_GAP);
  layout.height = rows * ROW;
  return layout;
}

/** For each depth the states, or groups of states, in their order. */
function orderedBands(model: MapModel, shown: Shown): number[][][] {
  const { url, id, group } = model.answer.states;
  const byDepth: number[][] = Array.from({ length: model.maxDepth + 1 }, () => []);
  for (let state = 0; state < model.states; state++) {
    if (shown.keep(state)) byDepth[model.depth[state]!]!.push(state);
  }
  const position = new Int32Array(model.states).fill(-1);
  return byDepth.map((states) => {
    const at = (state: number) => (model.parent[state]! < 0 ? -1 : position[model.parent[state]!]!);
    states.sort((a, b) => at(a) - at(b) || compare(url[a]!, url[b]!) || compare(id[a]!, id[b]!));
    const units: number[][] = [];
    const ofGroup = new Map<number, number[]>();
    for (const state of states) {
      const known = ofGroup.get(group[state]!);
      if (known) known.push(state);
      else {
        const unit = [state];
        units.push(unit);
        if (group[state]! >= 0 && shown.collapsed(group[state]!)) ofGroup.set(group[state]!, unit);
      }
    }
    units.forEach((unit, order) => unit.forEach((state) => (position[state] = order)));
    return units;
  });
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The number of rows with which the map is most nearly `ASPECT` times as wide as high. */
function bestRows(sizes: number[]): number {
  const most = Math.max(1, ...sizes);
  let best = 1;
  let least = Infinity;
  for (let rows = 1; rows <= most; rows = rows < 40 ? rows + 1 : Math.ceil(rows * 1.05)) {
    const columns = sizes.reduce((sum, size) => sum + Math.max(1, Math.ceil(size / rows)), 0);
    const width = columns * COLUMN + (sizes.length - 1) * BAND_GAP;
    const misfit = Math.abs(Math.log(width / (rows * ROW) / ASPECT));
    if (misfit < least) [best, least] = [rows, misfit];
  }
  return best;
}
