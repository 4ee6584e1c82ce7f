/** Details of one state: its screenshot with boxes, where its elements lead, its texts, and what was left out. */

import { useEffect, useMemo, useState } from "preact/hooks";

import { report, useLoaded } from "./loading";
import { edgesAt, INHERITED, type MapModel, titleOf } from "./map/model";
import { CopyButton } from "./parts/copy";
import { Failure, Loading } from "./parts/feedback";
import { Limited } from "./parts/limited";
import { type Marked, Screenshot } from "./parts/screenshot";
import { getJson, saveFile, sitePath } from "./service";
import type { CaptureKind, ElementEdge, ElementsAnswer, StateAnswer, Tool, ToolsAnswer } from "./types";
import { count, isWebUrl, line, number, shortUrl, stepText } from "./words";

const LIMIT = 100;

interface Props {
  model: MapModel;
  site: string;
  nodeId: string;
  /** Pixels of screenshots per CSS pixel. */
  scale: number;
  stateHref: (nodeId: string) => string;
  startHref: (nodeId: string) => string;
  closeHref: string;
  /** Something points to a state of the map; -1: nothing does. */
  onPoint: (state: number) => void;
}

type Tab = "elements" | "texts" | "tools" | "outcomes" | "incoming" | "leads";

export function StatePanel(props: Props) {
  const { model, site, nodeId } = props;
  const path = `${sitePath(site)}/nodes/${nodeId}`;
  const state = useLoaded(`${path}@${model.answer.version}`, (signal) => getJson<StateAnswer>(path, signal));
  const elements = useLoaded(`${path}/elements@${model.answer.version}`, (signal) =>
    getJson<ElementsAnswer>(`${path}/elements`, signal),
  );
  return (
    <section class="panel state-panel" aria-label="State">
      <div class="panel-head">
        <h2 tabIndex={-1} dir="auto">
          {state.status === "loaded" ? line(state.value.title) || "Without a title" : "State"}
        </h2>
        <a class="close" href={props.closeHref} aria-label="Close the state" title="Close (Esc)">
          ×
        </a>
      </div>
      {state.status === "loading" && <Loading what="the state" />}
      {state.status === "failed" && <Failure failure={state.failure} />}
      {state.status === "loaded" &&
        (state.value.lead ? (
          <LeadFacts {...props} lead={state.value} />
        ) : elements.status === "loaded" ? (
          <Details key={nodeId} {...props} state={state.value} elements={elements.value} />
        ) : elements.status === "failed" ? (
          <Failure failure={elements.failure} />
        ) : (
          <Loading what="its elements" />
        ))}
    </section>
  );
}

function Details(props: Props & { state: StateAnswer; elements: ElementsAnswer }) {
  const { model, state, elements, onPoint } = props;
  const [pointed, setPointed] = useState(-1);
  const [tab, setTab] = useState<Tab>("elements");
  const marks = useMemo(
    () =>
      elements.elements.flatMap((element, key): Marked[] =>
        element.box ? [{ key, box: element.box, label: `${stepText(element)} → ${shortUrl(element.expected_url, model.answer.site)}` }] : [],
      ),
    [elements],
  );
  const point = (key: number) => {
    setPointed(key);
    onPoint(key < 0 ? -1 : (model.indexOf.get(elements.elements[key]!.expected_node_id) ?? -1));
  };
  useEffect(() => () => onPoint(-1), []);
  const index = model.indexOf.get(state.node_id) ?? -1;
  const incoming = useMemo(() => (index < 0 ? [] : sourcesOf(model, index)), [model, index]);
  const toolsPath = `${sitePath(props.site)}/tools?state=${state.node_id}&limit=500`;
  const tools = useLoaded(`${toolsPath}@${model.answer.version}`, (signal) => getJson<ToolsAnswer>(toolsPath, signal));
  const tabs: [Tab, string, number | null][] = [
    ["elements", "Leads to", elements.elements.length],
    ["incoming", "Reached from", incoming.length],
    ["texts", "Texts", state.segments.length],
    ["tools", "Tools", tools.status === "loaded" ? tools.value.total : null],
    ["outcomes", "Left out", elements.outcomes_total],
    ["leads", "Not visited", elements.leads_total],
  ];
  return (
    <>
      <Screenshot
        path={state.screenshot}
        alt={`Screenshot of ${line(state.title, 120)}`}
        scale={props.scale}
        marks={marks}
        pointed={pointed}
        onPoint={point}
        onChoose={(key) => (location.hash = props.stateHref(elements.elements[key]!.expected_node_id))}
      />
      <Facts {...props} />
      <Downloads {...props} />
      <div class="tabs" role="group" aria-label="Part of the state">
        {tabs.map(([name, label, size]) => (
          <button type="button" key={name} aria-pressed={tab === name} onClick={() => setTab(name)}>
            {label} {size !== null && <span class="count">{number(size)}</span>}
          </button>
        ))}
      </div>
      {tab === "elements" && <Elements {...props} pointed={pointed} onPointElement={point} />}
      {tab === "incoming" && (
        <Sources {...props} sources={incoming} />
      )}
      {tab === "texts" && <Texts {...props} />}
      {tab === "tools" &&
        (tools.status === "loaded" ? (
          <Tools answer={tools.value} />
        ) : tools.status === "failed" ? (
          <Failure failure={tools.failure} />
        ) : (
          <Loading what="its tools" />
        ))}
      {tab === "outcomes" && <Outcomes {...props} />}
      {tab === "leads" && <Leads {...props} />}
    </>
  );
}

function Facts({ state, site, startHref }: Props & { state: StateAnswer }) {
  return (
    <div class="facts">
      <p class="url">
        {isWebUrl(state.url) ? (
          <a href={state.url} target="_blank" rel="noopener noreferrer">
            {shortUrl(state.url, site)}
          </a>
        ) : (
          line(state.url)
        )}
      </p>
      <p class="muted">
        {state.depth === 0 ? "The start page" : `${count(state.depth, "action")} from the start page`}
        {" · "}
        {state.addressable ? "its URL shows it" : "reached by actions only"}
        {state.stands_for > 1 && ` · stands for ${count(state.stands_for, "page")}`}
        {state.aliases.length > 0 && ` · ${count(state.aliases.length, "more snapshot")} of it`}
      </p>
      <p class="id">
        <code>{state.node_id}</code> <CopyButton text={state.node_id} label="Copy the id" />
      </p>
      <p>
        <a class="button" href={startHref(state.node_id)}>
          Search from here
        </a>
      </p>
    </div>
  );
}

const CAPTURES: [CaptureKind, string, string][] = [
  ["dom", "DOM", "html.txt"],
  ["aria", "Accessibility snapshot", "aria.txt"],
];

/** Files of the state; what the store does not keep is said. */
function Downloads({ state, elements, site }: Props & { state: StateAnswer; elements: ElementsAnswer }) {
  const [problem, setProblem] = useState("");
  const save = (path: string, name: string) => {
    setProblem("");
    saveFile(path, name).catch((error: unknown) => setProblem(report(error).message));
  };
  const node = `${sitePath(site)}/nodes/${state.node_id}`;
  const file = state.node_id.slice(0, 8);
  const missing = CAPTURES.filter(([kind]) => !elements.captures.includes(kind)).map(([, label]) => label);
  return (
    <div class="downloads" role="group" aria-label="Download">
      <span class="muted">Download</span>
      {CAPTURES.filter(([kind]) => elements.captures.includes(kind)).map(([kind, label, ending]) => (
        <button type="button" key={kind} onClick={() => save(`${node}/captures/${kind}`, `${file}.${ending}`)}>
          {label}
        </button>
      ))}
      {state.screenshot && (
        <button type="button" onClick={() => save(`${node}/screenshot`, `${file}.jpg`)}>
          Screenshot
        </button>
      )}
      {missing.length > 0 && <span class="muted">Not kept of this state: {missing.join(", ")}</span>}
      {problem && (
        <span role="alert" class="download-problem">
          {problem}
        </span>
      )}
    </div>
  );
}

function Elements(
  props: Props & { elements: ElementsAnswer; pointed: number; onPointElement: (key: number) => void },
) {
  const { elements, model, site, pointed, onPointElement, stateHref } = props;
  if (!elements.elements.length) return <p class="muted">Nothing leads on from here.</p>;
  return (
    <div onMouseLeave={() => onPointElement(-1)}>
      <Limited items={elements.elements} limit={LIMIT} label="Elements and where they lead">
        {(element: ElementEdge, key) => {
          const to = model.indexOf.get(element.expected_node_id);
          return (
            <li key={key}>
              <a
                class={`row ${key === pointed ? "row-pointed" : ""}`}
                href={stateHref(element.expected_node_id)}
                onMouseEnter={() => onPointElement(key)}
                onFocus={() => onPointElement(key)}
                onBlur={() => onPointElement(-1)}
              >
                <span dir="auto">{stepText(element)}</span>
                <span class="muted" dir="auto">
                  → {to === undefined ? shortUrl(element.expected_url, site) : line(titleOf(model, to), 120)}
                </span>
                <Marks element={element} />
              </a>
            </li>
          );
        }}
      </Limited>
    </div>
  );
}

function Marks({ element }: { element: ElementEdge }) {
  const marks = [
    element.inherited ? "not performed here" : "",
    element.opens_tab ? "opens a tab" : "",
    ...element.sends.map((request) => `sends ${line(request, 160)}, which was stopped; no path uses it`),
    element.box ? "" : "not located on the screenshot",
  ].filter(Boolean);
  return marks.length ? <span class="marks">{marks.join(" · ")}</span> : null;
}

interface Source {
  state: number;
  edges: number;
  inherited: boolean;
}

function sourcesOf(model: MapModel, state: number): Source[] {
  const found = new Map<number, Source>();
  for (const edge of edgesAt(model.incoming, state)) {
    const from = model.source[edge]!;
    if (from === state) continue;
    const known = found.get(from) ?? { state: from, edges: 0, inherited: true };
    const inherited = known.inherited && (model.flags[edge]! & INHERITED) !== 0;
    found.set(from, { state: from, edges: known.edges + 1, inherited });
  }
  return [...found.values()].sort(
    (a, b) => Number(a.inherited) - Number(b.inherited) || model.depth[a.state]! - model.depth[b.state]!,
  );
}

function Sources({ sources, model, site, stateHref, onPoint }: Props & { sources: Source[] }) {
  const { id, url } = model.answer.states;
  if (!sources.length) return <p class="muted">No other state leads here.</p>;
  return (
    <div onMouseLeave={() => onPoint(-1)}>
      <Limited items={sources} limit={LIMIT} label="States that lead here">
        {({ state, edges, inherited }: Source) => (
          <li key={state}>
            <a
              class="row"
              href={stateHref(id[state]!)}
              onMouseEnter={() => onPoint(state)}
              onFocus={() => onPoint(state)}
              onBlur={() => onPoint(-1)}
            >
              <span dir="auto">{line(titleOf(model, state), 120)}</span>
              <span class="muted">{shortUrl(url[state]!, site)}</span>
              {(edges > 1 || inherited) && (
                <span class="marks">
                  {[edges > 1 ? count(edges, "action") : "", inherited ? "not performed" : ""].filter(Boolean).join(" · ")}
                </span>
              )}
            </a>
          </li>
        )}
      </Limited>
    </div>
  );
}

function Texts({ state }: { state: StateAnswer }) {
  if (!state.segments.length) return <p class="muted">The page shows no text.</p>;
  return (
    <Limited items={state.segments} limit={LIMIT} label="Visible texts">
      {(segment, key) => (
        <li key={key} class="row text-row">
          <span class="muted">{line(segment.role, 30)}</span>
          <span dir="auto">{line(segment.text)}</span>
        </li>
      )}
    </Limited>
  );
}

function Tools({ answer }: { answer: ToolsAnswer }) {
  if (!answer.tools.length) return <p class="muted">The page declares no tool and has no form.</p>;
  return (
    <>
      {answer.tools.length < answer.total && (
        <p class="muted">
          The first {number(answer.tools.length)} of {number(answer.total)}.
        </p>
      )}
      <p class="muted">Names, descriptions and inputs are the page’s own text.</p>
      <Limited items={answer.tools} limit={LIMIT} label="What can be done here">
        {(tool: Tool) => (
          <li key={tool.id} class="row">
            <span dir="auto">
              <code>{line(tool.name, 100)}</code>{" "}
              <span class="tag">{tool.read_only ? "only reads" : "may change something"}</span>
            </span>
            {(tool.description || tool.title) && (
              <span class="muted" dir="auto">
                “{line(tool.description || tool.title)}”
              </span>
            )}
            <span dir="auto">{inputsOf(tool)}</span>
            <span class="marks">{tool.source === "inferred" ? "inferred from its form" : `declared by a ${tool.source}`}</span>
          </li>
        )}
      </Limited>
    </>
  );
}

/** Names of the inputs, those that are required marked. */
function inputsOf({ input_schema: { properties, required } }: Tool): string {
  const names = properties && typeof properties === "object" ? Object.keys(properties) : [];
  const needed = Array.isArray(required) ? required : [];
  if (!names.length) return "No inputs";
  return `Inputs: ${line(names.map((name) => (needed.includes(name) ? `${name} (required)` : name)).join(", "))}`;
}

function Outcomes({ elements, site }: Props & { elements: ElementsAnswer }) {
  if (!elements.outcomes.length) return <p class="muted">No element of this state was left out.</p>;
  return (
    <>
      {elements.outcomes.length < elements.outcomes_total && (
        <p class="muted">
          The first {number(elements.outcomes.length)} of {number(elements.outcomes_total)}.
        </p>
      )}
      <Limited items={elements.outcomes} limit={LIMIT} label="Elements that are not in the map">
        {(outcome, key) => (
          <li key={key} class="row">
            <span dir="auto">
              {line(outcome.element, 160)}
              {outcome.target && <span class="muted"> → {shortUrl(outcome.target, site)}</span>}
            </span>
            <span>
              <span class={`tag tag-${outcome.status}`}>{outcome.status}</span>{" "}
              {line(outcome.reason.replaceAll("_", " "), 60)}
              {outcome.detail && outcome.detail !== outcome.target && (
                <span class="muted">: {line(outcome.detail, 200)}</span>
              )}
            </span>
            {outcome.rule && <span class="marks">decided by: {line(outcome.rule, 200)}</span>}
          </li>
        )}
      </Limited>
    </>
  );
}

function Leads({ elements, site, stateHref }: Props & { elements: ElementsAnswer }) {
  if (!elements.leads.length) return <p class="muted">Every page that was found here was visited.</p>;
  return (
    <Limited items={elements.leads} limit={LIMIT} label="Pages that were not visited">
      {(lead) => (
        <li key={lead.node_id}>
          <a class="row" href={stateHref(lead.node_id)}>
            <span dir="auto">{line(lead.title, 120)}</span>
            <span class="muted">{shortUrl(lead.url, site)}</span>
            {lead.refusal && <span class="marks">no path leads there: {line(lead.refusal, 60)}</span>}
          </a>
        </li>
      )}
    </Limited>
  );
}

function LeadFacts({ lead: state, site, stateHref }: Props & { lead: StateAnswer }) {
  const lead = state.lead!;
  return (
    <div class="facts">
      <p>
        <span class="tag">not visited</span> This page is known from links only.
      </p>
      <p class="url">
        {isWebUrl(state.url) ? (
          <a href={state.url} target="_blank" rel="noopener noreferrer">
            {shortUrl(state.url, site)}
          </a>
        ) : (
          line(state.url)
        )}
      </p>
      {lead.refusal && <p>No path leads there: its links are left alone ({line(lead.refusal, 60)}).</p>}
      {lead.heading && <p class="muted">Under the heading “{line(lead.heading, 120)}”</p>}
      {lead.description && <p class="muted">Beside the link: {line(lead.description)}</p>}
      <p>
        <a class="button" href={stateHref(lead.state)}>
          The state that links to it
        </a>
      </p>
    </div>
  );
}
