/** Answers of the HTTP API, as `waygraph/core/schemas.py` and `waygraph/core/view_schemas.py` define them. */

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  hint: string;
}

export interface SiteCard {
  site: string;
  version: number;
  start_url: string;
  states: number;
  edges: number;
  created: string;
  partial: boolean;
  start_node_id: string;
  depth: number;
  leads: number;
  stood_for: number;
  thumbnail: string;
  stopped_by: string;
  seconds: number | null;
  outcomes: Partial<Record<"skipped" | "failed" | "pending", number>>;
}

/** A site that a run works on. */
export interface ActiveSite {
  site: string;
  phase: "exploring" | "encoding";
  since: string;
  attempt: number;
  states: number;
  edges: number;
  pending: number;
  failed: number;
}

export interface RunProgress {
  run_id: string;
  work: string;
  updated: string;
  sites: number;
  done: Record<string, number>;
  active: ActiveSite[];
}

export interface GraphAnswer {
  site: string;
  version: number;
  start: number;
  states: {
    id: string[];
    url: string[];
    title: string[];
    depth: number[];
    addressable: boolean[];
    stands_for: number[];
    screenshot: string[];
    skipped: number[];
    group: number[];
  };
  groups: string[];
  kinds: string[];
  edges: { source: number[]; target: number[]; kind: number[]; flags: number[] };
}

/** What `GET /v1/sites/{site}` answers, as far as it is shown. */
export interface SiteFacts {
  version: number;
  versions: number[];
  capture: { scale?: number };
}

export interface Action {
  kind: string;
  url: string;
  role: string;
  name: string;
  nth: number;
  value: string;
  target: string;
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Segment {
  text: string;
  role: string;
  box: Box;
}

export interface StateAnswer {
  site: string;
  version: number;
  node_id: string;
  url: string;
  title: string;
  depth: number;
  addressable: boolean;
  screenshot: string | null;
  segments: Segment[];
  aliases: string[];
  stands_for: number;
  lead: { names: string[]; heading: string; description: string; state: string; refusal: string } | null;
}

export interface ElementEdge {
  action: Action;
  expected_node_id: string;
  expected_url: string;
  cost_ms: number;
  inherited: boolean;
  openers?: Action[];
  opens_tab: boolean;
  sends: string[];
  box: Box | null;
}

export interface ElementOutcome {
  status: "skipped" | "failed" | "pending";
  element: string;
  reason: string;
  detail: string;
  rule: string;
  target: string;
}

export type CaptureKind = "dom" | "aria";

export interface ElementsAnswer {
  node_id: string;
  elements: ElementEdge[];
  outcomes: ElementOutcome[];
  outcomes_total: number;
  leads: { node_id: string; url: string; title: string; refusal: string }[];
  leads_total: number;
  captures: CaptureKind[];
}

/** A part of a screenshot, in its pixels, with the part of the score that it earned. */
export interface Patch {
  box: Box;
  earned: number;
}

export interface Hit {
  rank: number;
  node_id: string;
  url: string;
  title: string;
  score: number;
  matched: { text: string; score: number; segments: Segment[]; patches: Patch[]; generated: boolean } | null;
  screenshot: string | null;
  visited: boolean;
  refusal: string;
  reranked: number | null;
}

export interface SearchAnswer {
  hits: Hit[];
  version: number | null;
  nothing_matches: boolean | null;
  confidence: number | null;
}

export interface Step {
  action: Action;
  expected_url: string;
  expected_node_id: string;
  cost_ms: number;
  inherited: boolean;
  openers?: Action[];
  opens_tab: boolean;
  suspect: boolean;
}

export interface PathAnswer {
  source: string | null;
  target: string;
  cost_ms: number;
  steps: Step[];
}

export interface StateChange {
  verdict: "changed" | "added" | "gone" | "moved";
  before: string;
  after: string;
  url: string;
  title: string;
  previous_url: string;
  depth: number;
  added: string[];
  removed: string[];
  screenshot_before: string | null;
  screenshot_after: string | null;
}

export interface ActionChange {
  verdict: "changed" | "gone" | "added" | "session_dependent" | "non_deterministic";
  action: Action;
  source: string;
  source_url: string;
  previous_target_url: string;
  target_url: string;
}

/** What one can do on a state; name, title, description and schema are the page's own texts. */
export interface Tool {
  id: string;
  name: string;
  title: string;
  description: string;
  input_schema: { properties?: unknown; required?: unknown };
  source: "script" | "form" | "polyfill" | "inferred";
  method?: string;
  target?: string;
  read_only?: boolean;
}

export interface ToolsAnswer {
  tools: Tool[];
  total: number;
}

export interface ToolChange {
  verdict: "changed" | "gone" | "added";
  name: string;
  attributes: string[];
  inputs: string[];
}

export interface ChangesAnswer {
  site: string;
  from_version: number;
  to_version: number;
  from_created: string;
  to_created: string;
  versions: number[];
  counts: { states: Partial<Record<StateChange["verdict"] | "match", number>> };
  states: StateChange[];
  changed_ids: string[];
  actions: ActionChange[];
  actions_total: number;
  tools: ToolChange[];
  tools_total: number;
  broken: { node_id: string; url: string; title: string; action: Action }[];
  broken_total: number;
}
