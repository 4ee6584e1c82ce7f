/** Beside the map: find a state by title or URL, filter what is drawn, and the list of states. */

import { useMemo, useRef } from "preact/hooks";

import type { Loaded } from "./loading";
import { KIND_GROUPS } from "./map/edges";
import { type MapModel, titleOf } from "./map/model";
import { Failure, Loading } from "./parts/feedback";
import { Limited } from "./parts/limited";
import { count, line, number, shortUrl } from "./words";

export interface MapFilters {
  find: string;
  maxDepth: number;
  hiddenKinds: ReadonlySet<string>;
  collapse: boolean;
  allEdges: boolean;
  inherited: boolean;
  onlySkipped: boolean;
  /** Number of a version: only states that changed since then; empty: all. */
  since: string;
}

interface Props {
  model: MapModel;
  filters: MapFilters;
  versions: readonly number[];
  /** What changed since `filters.since`, if that is chosen. */
  changes: Loaded<unknown>;
  /** Matching states if something is searched, else all states that are drawn. */
  listed: readonly number[];
  selected: number;
  onChange: (filters: Partial<MapFilters>) => void;
  stateHref: (nodeId: string) => string;
  onPoint: (state: number) => void;
}

export function MapPanel({ model, filters, versions, changes, listed, selected, onChange, stateHref, onPoint }: Props) {
  const { answer } = model;
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const kinds = useMemo(() => kindCounts(model), [model]);
  const inherited = useMemo(() => model.flags.reduce((sum, flags) => sum + (flags & 1), 0), [model]);
  const skipped = useMemo(() => answer.states.skipped.filter((each) => each > 0).length, [model]);

  const earlier = versions.filter((version) => version < answer.version).reverse();

  const moveFocus = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const links = [...list.current!.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement);
    const next = event.key === "ArrowDown" ? at + 1 : at - 1;
    (next < 0 ? input.current : links[Math.min(next, links.length - 1)])?.focus();
    event.preventDefault();
  };

  return (
    <section class="panel" aria-label="States" onKeyDown={moveFocus}>
      <label class="field">
        <span>Find a state</span>
        <input
          ref={input}
          type="search"
          id="find"
          placeholder="Title or URL"
          autocomplete="off"
          spellcheck={false}
          value={filters.find}
          onInput={(event) => onChange({ find: event.currentTarget.value })}
        />
      </label>
      <details class="filters" open={innerWidth > 700}>
        <summary>What is drawn</summary>
        {model.maxDepth > 0 && (
          <label class="field">
            <span>
              Up to {filters.maxDepth >= model.maxDepth ? "any depth" : count(filters.maxDepth, "action") + " from the start"}
            </span>
            <input
              type="range"
              min={0}
              max={model.maxDepth}
              value={Math.min(filters.maxDepth, model.maxDepth)}
              onInput={(event) => onChange({ maxDepth: Number(event.currentTarget.value) })}
            />
          </label>
        )}
        <fieldset>
          <legend>Kinds of action</legend>
          {kinds.map(([kind, size]) => (
            <label class="check" key={kind}>
              <input
                type="checkbox"
                checked={!filters.hiddenKinds.has(kind)}
                onChange={() => onChange({ hiddenKinds: toggled(filters.hiddenKinds, kind) })}
              />
              <span class={`swatch swatch-${KIND_GROUPS[kind] ?? "click"}`} aria-hidden="true" />
              {kind} <span class="count">{number(size)}</span>
            </label>
          ))}
        </fieldset>
        <fieldset>
          <legend>Show</legend>
          <Check
            label="All edges, not only how each state was found"
            checked={filters.allEdges}
            onChange={(allEdges) => onChange({ allEdges })}
          />
          {inherited > 0 && (
            <Check
              label="Edges that were not performed"
              size={inherited}
              disabled={!filters.allEdges}
              checked={filters.inherited}
              onChange={(each) => onChange({ inherited: each })}
            />
          )}
          {answer.groups.length > 0 && (
            <Check
              label="Alike pages as one"
              size={answer.groups.length}
              checked={filters.collapse}
              onChange={(collapse) => onChange({ collapse })}
            />
          )}
          {skipped > 0 && (
            <Check
              label="Only states where something was skipped"
              size={skipped}
              checked={filters.onlySkipped}
              onChange={(onlySkipped) => onChange({ onlySkipped })}
            />
          )}
        </fieldset>
        {earlier.length > 0 && (
          <label class="field">
            <span>Changed since version</span>
            <select value={filters.since} onChange={(event) => onChange({ since: event.currentTarget.value })}>
              <option value="">any: show all states</option>
              {earlier.map((version) => (
                <option key={version} value={String(version)}>
                  {version}
                </option>
              ))}
            </select>
          </label>
        )}
      </details>
      {filters.since && changes.status === "loading" && <Loading what="what changed" />}
      {filters.since && changes.status === "failed" && <Failure failure={changes.failure} />}
      <p class="muted list-head" role="status">
        {filters.find.trim() ? `${count(listed.length, "state")} found` : count(listed.length, "state")}
      </p>
      <div ref={list} onMouseLeave={() => onPoint(-1)}>
        <Limited items={listed} limit={120} label="States">
          {(state: number) => (
            <li key={state}>
              <a
                class={`row ${state === selected ? "row-pointed" : ""}`}
                href={stateHref(answer.states.id[state]!)}
                aria-current={state === selected ? "true" : undefined}
                onMouseEnter={() => onPoint(state)}
              >
                <span dir="auto">{line(titleOf(model, state), 120)}</span>
                <span class="muted">
                  {shortUrl(answer.states.url[state]!, answer.site)}
                  {answer.states.addressable[state] ? "" : " · by actions only"}
                </span>
              </a>
            </li>
          )}
        </Limited>
      </div>
    </section>
  );
}

interface CheckProps {
  label: string;
  size?: number;
  checked: boolean;
  disabled?: boolean;
  onChange: (checked: boolean) => void;
}

function Check({ label, size, checked, disabled = false, onChange }: CheckProps) {
  return (
    <label class={`check ${disabled ? "disabled" : ""}`}>
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      {label} {size !== undefined && <span class="count">{number(size)}</span>}
    </label>
  );
}

function toggled(set: ReadonlySet<string>, member: string): Set<string> {
  const made = new Set(set);
  if (!made.delete(member)) made.add(member);
  return made;
}

function kindCounts(model: MapModel): [string, number][] {
  const sizes = new Array<number>(model.answer.kinds.length).fill(0);
  for (const kind of model.kind) sizes[kind]!++;
  return model.answer.kinds.map((kind, index): [string, number] => [kind, sizes[index]!]).sort((a, b) => b[1] - a[1]);
}
