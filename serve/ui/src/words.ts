/** Numbers, times and actions in words. */

import type { Action } from "./types";

const numbers = new Intl.NumberFormat("en");

export function count(value: number, one: string, many = `${one}s`): string {
  return `${numbers.format(value)} ${value === 1 ? one : many}`;
}

export function number(value: number): string {
  return numbers.format(value);
}

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

export function ago(isoTime: string): string {
  const seconds = (Date.now() - Date.parse(isoTime)) / 1000;
  for (const [unit, length] of UNITS) {
    if (seconds >= length) return relative.format(-Math.floor(seconds / length), unit);
  }
  return "just now";
}

/** Date and time of an ISO time; the text itself if it is none. */
export function dateTime(isoTime: string): string {
  const time = Date.parse(isoTime);
  if (Number.isNaN(time)) return line(isoTime, 40);
  return new Date(time).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

export function duration(seconds: number): string {
  if (seconds < 100) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** The longest text of a page that is shown on one line. */
const MAX_LINE = 300;

/** A text of a page on one line: long texts are cut, control and direction characters are removed. */
export function line(text: string, limit = MAX_LINE): string {
  const plain = text.slice(0, 4 * limit).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").replace(DIRECTION, "");
  return plain.length > limit ? `${plain.slice(0, limit)}…` : plain;
}

/** Characters that would reorder what stands around them; texts keep their own direction by `unicode-bidi: isolate`. */
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function actionText(action: Action): string {
  if (action.kind === "goto") return `load ${line(action.url)}`;
  if (action.kind === "press" && !action.role && !action.name) return `press ${line(action.value, 40)}`;
  const value = action.value ? ` (${line(action.value, 40)})` : "";
  return `${action.kind} ${action.role} “${line(action.name, 120) || "without a name"}”${value}`;
}

/** The actions of a step: those that show its element, and its action. */
export function stepText(step: { openers?: Action[]; action: Action }): string {
  return [...(step.openers ?? []), step.action].map(actionText).join(", then ");
}

/** Path and query of a URL; the whole URL if it is on another host or not a URL. */
export function shortUrl(url: string, site: string): string {
  try {
    const parsed = new URL(url);
    return line(parsed.host === site ? `${parsed.pathname}${parsed.search}${parsed.hash}` : url);
  } catch {
    return line(url);
  }
}

export function isWebUrl(url: string): boolean {
  return /^https?:\/\//i.test(url);
}
