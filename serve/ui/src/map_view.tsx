/** One site: its map in the middle, a list or a search beside it, and the selected state. */

import { useCallback, useLayoutEffect, useMemo, useState } from "preact/hooks";

import { useLoaded, usePolled } from "./loading";
import { drawnEdges, drawsAllEdges } from "./map/edges";
import { layOut } from "./map/layout";
import { MapCanvas } from "./map/map_canvas";
import { buildModel, edgesAt, matchingStates, type MapModel } from "./map/model";
import type { Scene } from "./map/renderer";
import { type MapFilters, MapPanel } from "./map_panel";
import { Empty, Failure, Loading } from "./parts/feedback";
import { go, mapHref, replace, type Route, searchHref } from "./route";
import { SearchPanel, type SearchQuery } from "./search_panel";
import { getJson, sitePath } from "./service";
import { StatePanel } from "./state_panel";
import type { ChangesAnswer, GraphAnswer, Hit, PathAnswer, SiteCard, SiteFacts } from "./types";

export function MapView({ route }: { route: Route }) {
  const { site } = route;
  const loaded = useLoaded(`graph ${site}`, async (signal) => {
    const [answer, facts] = await Promise.all([
      getJson<GraphAnswer>(`${sitePath(site)}/graph`, signal),
      getJson<SiteFacts>(sitePath(site), signal),
    ]);
    return { model: buildModel(answer), scale: facts.capture.scale || 1, versions: facts.versions };
  });
  if (loaded.status === "loading") return <Loading what="the map" />;
  if (loaded.status === "failed") {
    return (
      <Failure failure={loaded.failure}>
        <a href="#/">All sites</a>
      </Failure>
    );
  }
  const { model } = loaded.value;
  return (
    <>
      <NewerVersion site={site} version={model.answer.version} />
      {model.states ? <OpenSite route={route} {...loaded.value} /> : <Empty title="The map has no states" />}
    </>
  );
}

/** How often a map that is shown is compared with the newest version. */
const VERSION_MS = 5_000;

/** Says that the map that is shown is no longer the newest. */
function NewerVersion({ site, version }: { site: string; version: number }) {
  const path = `v1/cards?site=${encodeURIComponent(site)}`;
  const cards = usePolled((signal) => getJson<SiteCard[]>(path, signal), VERSION_MS);
  if (cards === null) return null; // not known yet
  const newest = cards[0]?.version;
  if (newest === version) return null;
  return (
    <p class="banner" role="status">
      {newest === undefined ? (
        "This map was removed meanwhile. What is shown stays."
      ) : (
        <>
          Version {newest} of the map was published meanwhile.{" "}
          <button type="button" onClick={() => location.reload()}>
            Load it
          </button>
        </>
      )}
    </p>
  );
}

const NONE: readonly number[] = [];

interface OpenSiteProps {
  route: Route;
  model: MapModel;
  /** Pixels of screenshots per CSS pixel. */
  scale: number;
  versions: readonly number[];
}

function OpenSite({ route, model, scale, versions }: OpenSiteProps) {
  const { site, query } = route;
  const isSearch = route.view === "search";
  const filters = useMemo(() => filtersOf(query, model), [query.toString(), model]);
  const [expanded, setExpanded] = useState<ReadonlySet<number>>(new Set());
  const [path, setPath] = useState<PathAnswer | null>(null);
  const [hits, setHits] = useState<readonly Hit[] | null>(null);
  const [pointed, setPointed] = useState(-1);
  const selectedId = useMemo(() => fullId(model, route.state), [model, route.state]);
  const selected = model.indexOf.get(selectedId) ?? -1;

  const matching = useMemo(
    () => (filters.find.trim() ? matchingStates(model, filters.find) : null),
    [model, filters.find],
  );
  const { since } = filters;
  const changes = useLoaded(since && `since ${site} ${since} ${model.answer.version}`, (signal) =>
    getJson<ChangesAnswer>(`${sitePath(site)}/changes?from=${since}&to=${model.answer.version}`, signal),
  );
  const changed = useMemo(
    () => (since && changes.status === "loaded" ? new Set(changes.value.changed_ids) : null),
    [since, changes],
  );
  // Groups that hold what is selected or on the path are opened, so that it can be seen where that is.
  const needed = useMemo(() => {
    const states = [selected, ...(path ? statesOf(model, path) : [])];
    return new Set(states.filter((state) => state >= 0).map((state) => model.answer.states.group[state]!));
  }, [model, selected, path]);
  const neededKey = [...needed].sort().join();
  const layout = useMemo(
    () =>
      layOut(model, {
        keep: (state) =>
          model.depth[state]! <= filters.maxDepth &&
          (!filters.onlySkipped || model.answer.states.skipped[state]! > 0) &&
          (!changed || changed.has(model.answer.states.id[state]!)),
        collapsed: (group) => filters.collapse && !expanded.has(group) && !needed.has(group),
      }),
    [model, filters.maxDepth, filters.onlySkipped, changed, filters.collapse, expanded, neededKey],
  );
  const hiddenKinds = [...filters.hiddenKinds].sort().join();
  const edges = useMemo(
    () => drawnEdges(model, layout, { all: filters.allEdges, inherited: filters.inherited, hiddenKinds: filters.hiddenKinds }),
    [model, layout, filters.allEdges, filters.inherited, hiddenKinds],
  );
  const pathEdges = useMemo(() => (isSearch && path ? edgesOf(model, path) : NONE), [model, path, isSearch]);
  const fitTo = useMemo(() => (isSearch && path ? statesOf(model, path) : NONE), [model, path, isSearch]);
  const matches = useMemo(() => {
    if (isSearch) return hits && !path ? new Set(hits.flatMap((hit) => model.indexOf.get(hit.node_id) ?? [])) : null;
    return matching ? new Set(matching) : null;
  }, [isSearch, hits, path, matching, model]);
  const scene: Scene = useMemo(
    () => ({ model, layout, edges, selected, matches, path: pathEdges, pointed }),
    [model, layout, edges, selected, matches, pathEdges, pointed],
  );

  const stateHref = (nodeId: string) => {
    if (!isSearch) return mapHref(site, nodeId, query);
    return searchHref(site, { ...Object.fromEntries(query), state: nodeId });
  };
  const select = useCallback(
    (state: number) => {
      const id = state < 0 ? "" : model.answer.states.id[state]!;
      const href = isSearch
        ? searchHref(site, { ...Object.fromEntries(query), state: id })
        : mapHref(site, id, query);
      go(href);
    },
    [model, site, isSearch, query.toString()],
  );
  const changeSearch = (change: Partial<SearchQuery>) => {
    const now = searchOf(query);
    const next = { ...now, ...change };
    const href = searchHref(site, { q: next.text, from: next.from, to: next.to });
    go(href);
  };
  // As soon as the map is there: keys that are pressed before an effect runs would be lost.
  useLayoutEffect(() => shortcuts(selectedId ? () => select(-1) : null), [selectedId, select]);

  const listed = useMemo(() => {
    const all = matching ?? Array.from({ length: model.states }, (_, state) => state);
    return all.filter((state) => layout.placeOf[state]! >= 0);
  }, [matching, layout, model]);

  return (
    <main class={`workspace ${selectedId ? "with-state" : ""}`} id="main" tabIndex={-1}>
      <h1 class="hidden">
        {isSearch ? "Search" : "Map"} of {site}
      </h1>
      {isSearch ? (
        <SearchPanel
          model={model}
          site={site}
          query={searchOf(query)}
          scale={scale}
          onChange={changeSearch}
          onPath={setPath}
          onHits={setHits}
          onPoint={setPointed}
          stateHref={stateHref}
        />
      ) : (
        <MapPanel
          model={model}
          filters={filters}
          versions={versions}
          changes={changes}
          listed={listed}
          selected={selected}
          stateHref={stateHref}
          onPoint={setPointed}
          onChange={(change) => {
            if ("collapse" in change) setExpanded(new Set());
            replace(mapHref(site, route.state, queryOf({ ...filters, ...change }, model)));
          }}
        />
      )}
      <MapCanvas
        site={site}
        scene={scene}
        fitTo={fitTo}
        onSelect={select}
        onExpand={(group) => setExpanded(new Set([...expanded, group]))}
      />
      {selectedId && (
        <StatePanel
          model={model}
          site={site}
          nodeId={selectedId}
          scale={scale}
          stateHref={stateHref}
          startHref={(nodeId) => searchHref(site, { q: query.get("q") ?? "", from: nodeId })}
          closeHref={isSearch ? searchHref(site, { ...Object.fromEntries(query), state: "" }) : mapHref(site, "", query)}
          onPoint={setPointed}
        />
      )}
    </main>
  );
}

/** The id of the state that an address names by a prefix; the address's own text if there is none or several. */
function fullId(model: MapModel, prefix: string): string {
  if (!prefix || model.indexOf.has(prefix)) return prefix;
  const found = model.answer.states.id.filter((id) => id.startsWith(prefix));
  return found.length === 1 ? found[0]! : prefix;
}

function searchOf(query: URLSearchParams): SearchQuery {
  return { text: query.get("q") ?? "", from: query.get("from") ?? "", to: query.get("to") ?? "" };
}

function filtersOf(query: URLSearchParams, model: MapModel): MapFilters {
  const depth = Number(query.get("depth") ?? NaN);
  return {
    find: query.get("find") ?? "",
    maxDepth: Number.isInteger(depth) && depth >= 0 ? depth : model.maxDepth,
    hiddenKinds: new Set((query.get("hide") ?? "").split(",").filter(Boolean)),
    collapse: query.get("groups") !== "open",
    allEdges: (query.get("edges") ?? defaultEdges(model)) === "all",
    inherited: query.get("inherited") === "yes",
    onlySkipped: query.get("skipped") === "only",
    since: /^[1-9]\d{0,8}$/.exec(query.get("since") ?? "")?.[0] ?? "",
  };
}

function queryOf(filters: MapFilters, model: MapModel): URLSearchParams {
  const edges = filters.allEdges ? "all" : "found";
  const values: Record<string, string> = {
    find: filters.find,
    depth: filters.maxDepth < model.maxDepth ? String(filters.maxDepth) : "",
    hide: [...filters.hiddenKinds].join(","),
    groups: filters.collapse ? "" : "open",
    edges: edges === defaultEdges(model) ? "" : edges,
    inherited: filters.inherited ? "yes" : "",
    skipped: filters.onlySkipped ? "only" : "",
    since: filters.since,
  };
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value));
}

function defaultEdges(model: MapModel): "all" | "found" {
  return drawsAllEdges(model) ? "all" : "found";
}

/** States of a path, in order. */
function statesOf(model: MapModel, path: PathAnswer): number[] {
  const ids = [path.source ?? "", ...path.steps.map((step) => step.expected_node_id), path.target];
  return [...new Set(ids.flatMap((id) => model.indexOf.get(id) ?? []))];
}

/** Edges of a path; steps that load a URL have none. */
function edgesOf(model: MapModel, path: PathAnswer): number[] {
  const ids = [path.source ?? "", ...path.steps.map((step) => step.expected_node_id)];
  return path.steps.flatMap((step, at) => {
    const from = model.indexOf.get(ids[at]!);
    const to = model.indexOf.get(step.expected_node_id);
    if (from === undefined || to === undefined || step.action.kind === "goto") return [];
    const between = [...edgesAt(model.outgoing, from)].filter((edge) => model.target[edge] === to);
    const sameKind = between.find((edge) => model.answer.kinds[model.kind[edge]!] === step.action.kind);
    return sameKind ?? between[0] ?? [];
  });
}

/** `/` goes to the field for words, Escape closes the selected state. Returns what ends that. */
function shortcuts(close: (() => void) | null): () => void {
  const listen = (event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    const isTyping = target.matches("input, select, textarea");
    if (event.key === "/" && !isTyping) {
      (document.getElementById("find") ?? document.getElementById("query"))?.focus();
      event.preventDefault();
    } else if (event.key === "Escape" && close && !isTyping && !event.defaultPrevented) close();
  };
  addEventListener("keydown", listen);
  return () => removeEventListener("keydown", listen);
}
