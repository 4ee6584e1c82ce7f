/** Charts of reports: bars, histograms, boxes and curves, drawn as SVG in the colours of the theme. */

import type { ComponentChildren } from "preact";

import { line, number } from "../words";
import type { DepthFindings, RoundRecord } from "./document";

/** Sizes in units of the view box: of bars, and of charts with a vertical axis. */
const WIDTH = 740;
const LABEL = 250;
const VALUE = 90;
const ROW = 24;
const HEIGHT = 266;
const TOP = 16;
const LEFT = 56;
const PLOT_WIDTH = WIDTH - LEFT - 24;
const PLOT_HEIGHT = HEIGHT - TOP - 58;
const BASE = TOP + PLOT_HEIGHT;
const MAX_LABEL = 34;

export function formatNumber(value: number): string {
  if (Number.isInteger(value) || value >= 100) return number(Math.round(value));
  return String(Number(value.toPrecision(3)));
}

interface Bar {
  label: string;
  value: number;
  /** What else is known of it, for the tooltip. */
  note?: string;
}

/** One horizontal bar for each label. */
export function Bars({ rows, kind = "", label }: { rows: readonly Bar[]; kind?: "" | "bad" | "pale"; label: string }) {
  const most = Math.max(...rows.map((row) => row.value), 0) || 1;
  const room = WIDTH - LABEL - VALUE;
  return (
    <Frame height={rows.length * ROW} label={textOf(label, rows)}>
      {rows.map((row, at) => {
        const width = Math.max(1.5, (room * row.value) / most);
        const y = at * ROW;
        return (
          <g key={at}>
            <title>{[`${line(row.label)}: ${formatNumber(row.value)}`, row.note ?? ""].filter(Boolean).join("\n")}</title>
            <text x={LABEL - 10} y={y + 16} text-anchor="end">
              {line(row.label, MAX_LABEL)}
            </text>
            <rect class={`mark ${kind}`} x={LABEL} y={y + 4} width={width} height={ROW - 8} rx={3} />
            <text class="value" x={LABEL + width + 8} y={y + 16}>
              {formatNumber(row.value)}
            </text>
          </g>
        );
      })}
    </Frame>
  );
}

/** What a chart says, for screen readers. */
function textOf(label: string, rows: readonly Bar[]): string {
  const told = rows.slice(0, 20).map((row) => `${line(row.label, 60)} ${formatNumber(row.value)}`);
  return `${label}: ${told.join(", ")}`;
}

/** Bars over an axis, each with a label and a note below it. */
export function Columns({ columns, unit, label }: { columns: readonly Required<Bar>[]; unit: string; label: string }) {
  const axis = axisOf(Math.max(...columns.map((each) => each.value), 0));
  const step = PLOT_WIDTH / Math.max(1, columns.length);
  const width = Math.min(64, 0.6 * step);
  return (
    <Plot axis={axis} label={textOf(label, columns)}>
      {columns.map((each, at) => {
        const x = LEFT + (at + 0.5) * step;
        const y = BASE - (PLOT_HEIGHT * each.value) / axis.top;
        return (
          <g key={at}>
            <title>{`${each.label}: ${formatNumber(each.value)} ${unit}\n${each.note}`}</title>
            <rect class="mark" x={x - width / 2} y={y} width={width} height={BASE - y} rx={2} />
            <Label x={x} y={y - 5} text={formatNumber(each.value)} kind="value" />
            <Label x={x} y={BASE + 18} text={each.label} />
            <Label x={x} y={BASE + 33} text={each.note} />
          </g>
        );
      })}
      <text x={LEFT} y={BASE + 50}>
        {unit}
      </text>
    </Plot>
  );
}

/** Counts by powers of two: lower bounds and counts. */
export function Histogram({ bins, unit }: { bins: readonly [number, number][]; unit: string }) {
  const axis = axisOf(Math.max(...bins.map(([, sites]) => sites), 0));
  const step = PLOT_WIDTH / Math.max(1, bins.length);
  const width = Math.min(64, 0.8 * step);
  const last = bins.at(-1)?.[0] ?? 0;
  const bounds = [...bins.map(([least]) => least), ...(bins.length ? [2 * last || 1] : [])];
  return (
    <Plot axis={axis} label={`Sites by ${unit}: ${bins.map(([least, sites]) => `from ${least}: ${sites}`).join(", ")}`}>
      {bins.map(([least, sites], at) => {
        const x = LEFT + (at + 0.5) * step;
        const y = BASE - (PLOT_HEIGHT * sites) / axis.top;
        return (
          <g key={at}>
            <title>{`${least < 2 ? least : `${number(least)} to ${number(2 * least - 1)}`} ${unit}: ${number(sites)} sites`}</title>
            <rect class="mark" x={x - width / 2} y={y} width={width} height={BASE - y} rx={2} />
            {sites > 0 && <Label x={x} y={y - 5} text={number(sites)} kind="value" />}
          </g>
        );
      })}
      {bounds.map((bound, at) => (
        <Label key={at} x={LEFT + at * step} y={BASE + 18} text={formatNumber(bound)} />
      ))}
      <Label x={(LEFT + WIDTH) / 2} y={BASE + 40} text={`${unit} (sites on the vertical axis)`} />
    </Plot>
  );
}

/** Discovery velocity by depth: the middle half of the sites as a box, the median as a bar, the extremes as a line. */
export function VelocityBoxes({ depths }: { depths: readonly DepthFindings[] }) {
  const shown = depths.filter((depth) => depth.velocity.count > 0);
  // One fast site among a thousand would flatten all boxes: its line is cut and labelled with the value.
  const axis = axisOf(Math.max(...shown.map((depth) => 1.6 * depth.velocity.upper), 0));
  const step = PLOT_WIDTH / Math.max(1, shown.length);
  const width = Math.min(56, 0.5 * step);
  const yOf = (value: number) => TOP + PLOT_HEIGHT * (1 - Math.min(value, axis.top) / axis.top);
  const told = shown.map(({ depth, velocity }) => `depth ${depth} median ${formatNumber(velocity.median)}`);
  return (
    <Plot axis={axis} label={`New states per minute by depth: ${told.join(", ")}`}>
      {shown.map(({ depth, sites, states, velocity }, at) => {
        const x = LEFT + (at + 0.5) * step;
        return (
          <g key={depth}>
            <title>
              {`Depth ${depth}: median ${formatNumber(velocity.median)}, half of the sites between ` +
                `${formatNumber(velocity.lower)} and ${formatNumber(velocity.upper)}, least ` +
                `${formatNumber(velocity.least)}, most ${formatNumber(velocity.most)}`}
            </title>
            <line class="stem" x1={x} x2={x} y1={yOf(velocity.least)} y2={yOf(velocity.most)} />
            <rect
              class="range"
              x={x - width / 2}
              y={yOf(velocity.upper)}
              width={width}
              height={Math.max(0, yOf(velocity.lower) - yOf(velocity.upper))}
            />
            <line class="median" x1={x - width / 2} x2={x + width / 2} y1={yOf(velocity.median)} y2={yOf(velocity.median)} />
            <text class="value" x={x + width / 2 + 6} y={yOf(velocity.median) + 4}>
              {formatNumber(velocity.median)}
            </text>
            {velocity.most > axis.top && (
              <text x={x + 6} y={TOP + 9}>
                up to {formatNumber(velocity.most)}
              </text>
            )}
            <Label x={x} y={BASE + 18} text={`depth ${depth}`} />
            <Label x={x} y={BASE + 33} text={`${number(sites)} ${sites === 1 ? "site" : "sites"}, ${number(states)} new`} />
          </g>
        );
      })}
      <text x={LEFT} y={BASE + 50}>
        new states per minute of exploring
      </text>
    </Plot>
  );
}

/** For each site the pages of new kinds that were found, by the number of actions. */
export function DiscoveryCurves({ sites }: { sites: readonly { site: string; rounds: readonly RoundRecord[] }[] }) {
  const curves = sites.map(({ site, rounds }) => ({ site, points: cumulative(rounds) }));
  const axis = axisOf(Math.max(...curves.map((curve) => curve.points.at(-1)![1]), 0));
  const most = Math.max(...curves.map((curve) => curve.points.at(-1)![0]), 0) || 1;
  const place = ([actions, found]: readonly [number, number]) =>
    [LEFT + (PLOT_WIDTH * actions) / most, TOP + PLOT_HEIGHT * (1 - found / axis.top)] as const;
  return (
    <Plot axis={axis} label={`Pages of new kinds by actions, for ${sites.map(({ site }) => line(site, 60)).join(", ")}`}>
      {curves.map(({ site, points }, at) => {
        const places = points.map(place);
        const [x, y] = places.at(-1)!;
        return (
          <g key={at}>
            <title>{line(site)}</title>
            <polyline class="curve" points={places.map((each) => each.map((value) => value.toFixed(1)).join()).join(" ")} />
            <text class="value" x={x - 4} y={y - 5} text-anchor="end">
              {line(site, MAX_LABEL)}
            </text>
          </g>
        );
      })}
      {[0, 0.5, 1].map((share) => (
        <Label key={share} x={LEFT + PLOT_WIDTH * share} y={BASE + 18} text={formatNumber(Math.round(most * share))} />
      ))}
      <Label x={(LEFT + WIDTH) / 2} y={BASE + 40} text="actions (pages of new kinds on the vertical axis)" />
    </Plot>
  );
}

/** The sums of actions and gains up to each round, from the start page on. */
function cumulative(rounds: readonly RoundRecord[]): [number, number][] {
  const points: [number, number][] = [[0, 0]];
  for (const round of rounds) {
    const [actions, found] = points.at(-1)!;
    points.push([actions + round.activations, found + round.gain]);
  }
  return points;
}

interface Axis {
  step: number;
  top: number;
}

/** An axis from 0 with three to seven ticks at round distances. */
export function axisOf(most: number): Axis {
  const magnitude = most > 0 ? 10 ** Math.floor(Math.log10(most)) : 1;
  const step = most > 0 ? [0.2, 0.25, 0.5, 1, 2].map((share) => share * magnitude).find((each) => most / each <= 5.5)! : 1;
  return { step, top: step * Math.max(1, Math.ceil((1.08 * most) / step)) };
}

function Plot({ axis, label, children }: { axis: Axis; label: string; children: ComponentChildren }) {
  const ticks = Array.from({ length: Math.round(axis.top / axis.step) + 1 }, (_, at) => at * axis.step);
  return (
    <Frame height={HEIGHT} label={label}>
      {ticks.map((value) => {
        const y = TOP + PLOT_HEIGHT * (1 - value / axis.top);
        return (
          <g key={value}>
            <line class={value ? "grid" : "axis"} x1={LEFT} x2={LEFT + PLOT_WIDTH} y1={y} y2={y} />
            <text x={LEFT - 8} y={y + 4} text-anchor="end">
              {formatNumber(value)}
            </text>
          </g>
        );
      })}
      {children}
    </Frame>
  );
}

function Frame({ height, label, children }: { height: number; label: string; children: ComponentChildren }) {
  return (
    // Scrolled sideways in narrow windows, where its labels would be too small otherwise, so it can have the focus.
    <div class="chart" role="group" aria-label="Chart" tabIndex={0}>
      <svg viewBox={`0 0 ${WIDTH} ${Math.max(1, height)}`} role="img" aria-label={label}>
        {children}
      </svg>
    </div>
  );
}

function Label({ x, y, text, kind }: { x: number; y: number; text: string; kind?: string }) {
  return (
    <text class={kind} x={x} y={y} text-anchor="middle">
      {text}
    </text>
  );
}
