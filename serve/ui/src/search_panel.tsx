/** Beside the map: a query, ranked hits, and the path to the chosen one, step by step. */

import { useEffect, useRef, useState } from "preact/hooks";

import { asFailure, isAbort, type Loaded, report, useLoaded } from "./loading";
import { type MapModel, titleOf } from "./map/model";
import { Snippets } from "./parts/copy";
import { Empty, Failure, Loading } from "./parts/feedback";
import { Screenshot } from "./parts/screenshot";
import { ServiceImage } from "./parts/service_image";
import { apiKey, postJson, RequestFailure, serviceUrl, sitePath, thumbnailPath } from "./service";
import { StepScreenshot } from "./step_screenshot";
import type { Hit, PathAnswer, SearchAnswer } from "./types";
import { count, line, shortUrl, stepText } from "./words";

/** Hits of one search. */
const HITS = 20;
/** Most hits that the MCP tool returns. */
const MCP_HITS = 5;

export interface SearchQuery {
  text: string;
  /** Id of the state where the path starts; empty: anywhere, so that it starts with loading a URL. */
  from: string;
  /** Id of the chosen hit. */
  to: string;
}

interface Props {
  model: MapModel;
  site: string;
  query: SearchQuery;
  /** Pixels of screenshots per CSS pixel. */
  scale: number;
  onChange: (query: Partial<SearchQuery>) => void;
  onPath: (path: PathAnswer | null) => void;
  onHits: (hits: readonly Hit[] | null) => void;
  onPoint: (state: number) => void;
  stateHref: (nodeId: string) => string;
}

interface TimedSearch {
  answer: SearchAnswer;
  milliseconds: number;
}

export function SearchPanel(props: Props) {
  const { model, site, query, onChange, onHits } = props;
  const [text, setText] = useState(query.text);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => setText(query.text), [query.text]);
  useEffect(() => {
    if (!query.text) input.current?.focus();
  }, []);
  const found = useLoaded<TimedSearch>(query.text && `${site} ${model.answer.version} ${query.text}`, async (signal) => {
    const started = performance.now();
    const answer = await postJson<SearchAnswer>(`${sitePath(site)}/search`, { query: query.text, k: HITS }, signal);
    return { answer, milliseconds: performance.now() - started };
  });
  const hits = query.text && found.status === "loaded" ? found.value.answer.hits : null;
  useEffect(() => onHits(hits), [hits]);
  return (
    <section class="panel" aria-label="Search">
      <form
        class="search-form"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          onChange({ text: text.trim(), to: "" });
        }}
      >
        <label class="field">
          <span>What do you look for?</span>
          <input
            ref={input}
            type="search"
            id="query"
            maxLength={2000}
            placeholder="a page, in plain words"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={!text.trim()}>
          Search
        </button>
      </form>
      <StartField {...props} />
      {!query.text && (
        <Empty title="Search this site as an agent does">
          <p>Describe a page in a few words. Hits are ranked by what their states show; choose one to see the way there.</p>
        </Empty>
      )}
      {query.text && found.status === "loading" && <Loading what="hits" />}
      {query.text && found.status === "failed" && <Failure failure={found.failure} />}
      {query.text && found.status === "loaded" && <Hits {...props} found={found.value} />}
    </section>
  );
}

/** Where the path starts: anywhere, at the start page, or at the state that was chosen with “Search from here”. */
function StartField({ model, query, onChange }: Props) {
  const { id } = model.answer.states;
  const start = id[model.answer.start] ?? "";
  const chosen = model.indexOf.get(query.from);
  return (
    <label class="field">
      <span>Path starts</span>
      <select value={query.from} onChange={(event) => onChange({ from: event.currentTarget.value })}>
        <option value="">anywhere, by loading a URL</option>
        <option value={start}>at the start page</option>
        {query.from && query.from !== start && (
          <option value={query.from}>
            at “{chosen === undefined ? query.from.slice(0, 8) : line(titleOf(model, chosen), 60)}”
          </option>
        )}
      </select>
    </label>
  );
}

function Hits(props: Props & { found: TimedSearch }) {
  const { found, query, site, model, onChange, onPoint } = props;
  const { hits, nothing_matches: nothing, confidence } = found.answer;
  if (!hits.length) return <Empty title="No state of this site was found" />;
  const best = Math.max(...hits.map((hit) => hit.score), 1e-9);
  return (
    <>
      <p class="muted list-head" role="status">
        {count(hits.length, "hit")} in {Math.round(found.milliseconds)} ms
        {confidence !== null && ` · confidence of the first ${Math.round(100 * confidence)}%`}
      </p>
      {nothing && <p class="notice">Most likely no state matches: the best score is low.</p>}
      {!nothing && confidence !== null && confidence < 0.5 && (
        <p class="notice">The first hit is barely ahead of the second: look at several.</p>
      )}
      <ol class="hits" aria-label="Hits" onMouseLeave={() => onPoint(-1)}>
        {hits.map((hit) => {
          const index = model.indexOf.get(hit.node_id);
          const screenshot = index === undefined ? "" : model.answer.states.screenshot[index]!;
          return (
            <li key={hit.node_id}>
              <button
                type="button"
                class="hit"
                aria-pressed={hit.node_id === query.to}
                onClick={() => onChange({ to: hit.node_id === query.to ? "" : hit.node_id })}
                onMouseEnter={() => onPoint(index ?? -1)}
                onFocus={() => onPoint(index ?? -1)}
              >
                <ServiceImage path={screenshot ? thumbnailPath(site, hit.node_id, screenshot) : null} alt="" />
                <span class="hit-text">
                  <strong dir="auto">{line(hit.title, 120) || shortUrl(hit.url, site)}</strong>
                  <span class="muted">{shortUrl(hit.url, site)}</span>
                  {hit.matched && (
                    <span class="why" dir="auto">
                      {hit.matched.patches.length ? `${count(hit.matched.patches.length, "part")} of its screenshot` : line(hit.matched.text, 140)}
                    </span>
                  )}
                  <span class="score">
                    <span class="score-bar" aria-hidden="true">
                      <span style={{ width: `${Math.max(2, (100 * hit.score) / best)}%` }} />
                    </span>
                    <span>{hit.score.toFixed(3)}</span>
                    {!hit.visited && <span class="tag">not visited</span>}
                    {hit.matched?.generated && <span class="tag">generated text</span>}
                  </span>
                </span>
              </button>
              {hit.node_id === query.to && (
                <>
                  <MatchedScreenshot hit={hit} scale={props.scale} />
                  <PathSteps {...props} />
                </>
              )}
            </li>
          );
        })}
      </ol>
      {!query.to && <Reuse {...props} />}
    </>
  );
}

/** Where the texts, or the parts of the screenshot, that matched are on the screenshot of a hit. */
function MatchedScreenshot({ hit, scale }: { hit: Hit; scale: number }) {
  const { text = "", segments = [], patches = [] } = hit.matched ?? {};
  if (!hit.screenshot || !(segments.length || patches.length)) return null;
  const most = Math.max(...patches.map(({ earned }) => earned), 1e-9);
  const total = Math.max(hit.score, 1e-9);
  const marks = patches.length
    ? patches.map(({ box, earned }, key) => ({
        key,
        box,
        label: `${formatShare(earned / total)} of the score`,
        heat: Math.max(0, earned / most),
      }))
    : segments.map((segment, key) => ({ key, box: segment.box, label: line(segment.text, 200) }));
  return (
    <div class="matched">
      <Screenshot
        path={hit.screenshot}
        alt={patches.length ? "The screenshot, with the parts that earned the score" : `Where it matches: ${line(text, 140)}`}
        scale={patches.length ? 1 : scale} // patches are in pixels of the screenshot
        marks={marks}
        pointed={-1}
        onPoint={() => undefined}
        onChoose={() => undefined}
      />
      {patches.length > 0 && (
        <p class="muted">
          {count(patches.length, "part")} of the screenshot earned {formatShare(patches.reduce((sum, { earned }) => sum + earned, 0) / total)} of
          the score; a stronger colour earned more.
        </p>
      )}
    </div>
  );
}

function formatShare(share: number): string {
  return `${Math.round(100 * share)}%`;
}

function PathSteps(props: Props) {
  const { model, site, query, onPath, onPoint, stateHref } = props;
  const [path, setPath] = useState<Loaded<PathAnswer>>({ status: "loading" });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    setPath({ status: "loading" });
    const body = { ...(query.from ? { from: query.from } : {}), to: query.to };
    postJson<PathAnswer>(`${sitePath(site)}/path`, body, controller.signal).then(
      (value) => {
        setPath({ status: "loaded", value });
        onPath(value);
      },
      (error: unknown) => {
        if (isAbort(error)) return;
        setPath({ status: "failed", failure: error instanceof RequestFailure ? report(error) : asFailure(error) });
        onPath(null);
      },
    );
    return () => {
      controller.abort();
      onPath(null);
    };
  }, [site, query.from, query.to, attempt]);
  if (path.status === "loading") return <Loading what="the path" />;
  if (path.status === "failed") {
    return (
      <>
        <Failure failure={path.failure}>
          <button type="button" onClick={() => setAttempt((each) => each + 1)}>
            Ask again
          </button>
        </Failure>
        <Reuse {...props} />
      </>
    );
  }
  const { steps, cost_ms: cost } = path.value;
  const sources = [path.value.source ?? "", ...steps.map((step) => step.expected_node_id)];
  const at = (nodeId: string) => model.indexOf.get(nodeId) ?? -1;
  return (
    <div class="path" aria-label="Path">
      <p class="muted">
        {steps.length ? `${count(steps.length, "step")}, about ${(cost / 1000).toFixed(1)} s` : "The path starts there already."}
      </p>
      <ol class="steps" onMouseLeave={() => onPoint(-1)}>
        {steps.map((step, number) => {
          const to = at(step.expected_node_id);
          return (
            <li key={number}>
              <a
                class="row"
                href={stateHref(step.expected_node_id)}
                onMouseEnter={() => onPoint(to)}
                onFocus={() => onPoint(to)}
              >
                <span dir="auto">{stepText(step)}</span>
                <span class="muted" dir="auto">
                  → {to < 0 ? shortUrl(step.expected_url, site) : line(titleOf(model, to), 120)}
                </span>
                {(step.inherited || step.suspect || step.opens_tab) && (
                  <span class="marks">
                    {[
                      step.inherited ? "not performed while mapping" : "",
                      step.suspect ? "recently reported as broken" : "",
                      step.opens_tab ? "opens a tab" : "",
                    ]
                      .filter(Boolean)
                      .join(" · ")}
                  </span>
                )}
              </a>
              {sources[number] && (
                <StepScreenshot model={model} site={site} nodeId={sources[number]} step={step} scale={props.scale} />
              )}
            </li>
          );
        })}
      </ol>
      <Reuse {...props} path={path.value} />
    </div>
  );
}

/** The same requests for use elsewhere. */
function Reuse({ site, query, path }: Props & { path?: PathAnswer }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="reuse" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{path ? "Copy this search and path" : "Copy this search"}</summary>
      {isOpen && <Snippets forms={snippets(site, query, path)} />}
    </details>
  );
}

export function snippets(site: string, query: SearchQuery, path?: PathAnswer): Record<string, string> {
  const base = serviceUrl("").replace(/\/$/, "");
  const search = { query: query.text, k: HITS };
  const way = { ...(query.from ? { from: query.from } : {}), to: query.to };
  const withKey = apiKey() !== "";
  const curl = (place: string, body: object) =>
    [
      `curl ${shellQuoted(serviceUrl(`${sitePath(site)}/${place}`))}`,
      ...(withKey ? [`-H "authorization: Bearer $WAYGRAPH_API_KEY"`] : []),
      "-H 'content-type: application/json'",
      `-d ${shellQuoted(JSON.stringify(body))}`,
    ].join(" \\\n  ");
  const key = withKey ? `, api_key=os.environ["WAYGRAPH_API_KEY"]` : "";
  const python = [
    ...(withKey ? ["import os", ""] : []),
    "from waygraph import Waygraph",
    "",
    `with Waygraph(${JSON.stringify(base)}${key}) as maps:`,
    `    answer = maps.search(${JSON.stringify(site)}, ${JSON.stringify(query.text)}, ${HITS})`,
    ...(path
      ? [`    path = maps.path(${JSON.stringify(site)}, ${query.from ? JSON.stringify(query.from) : "None"}, ${JSON.stringify(query.to)})`]
      : []),
  ].join("\n");
  const call = (id: number, name: string, args: object) =>
    JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } }, null, 1);
  const mcp = [
    call(1, "search_screens", { site, query: query.text, k: MCP_HITS }),
    ...(path ? [call(2, "path_to", { site, to: query.to, ...(query.from ? { current_id: query.from } : {}) })] : []),
  ];
  return {
    curl: path ? `${curl("search", search)}\n\n${curl("path", way)}` : curl("search", search),
    Python: python,
    MCP: mcp.join("\n"),
    JSON: JSON.stringify(path ?? search, null, 1),
  };
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
