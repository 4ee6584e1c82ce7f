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

export interface ElementsAnswer {
  node_id: string;
  elements: ElementEdge[];
  outcomes: ElementOutcome[];
  outcomes_total: number;
  leads: { node_id: string; url: string; title: string; refusal: string }[];
  leads_total: number;
}

export interface Hit {
  rank: number;
  node_id: string;
  url: string;
  title: string;
  score: number;
  matched: { text: string; score: number; segments: Segment[] } | null;
  screenshot: string | null;
  visited: boolean;
  refusal: string;
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
  opens_tab: boolean;
  suspect: boolean;
}

export interface PathAnswer {
  source: string | null;
  target: string;
  cost_ms: number;
  steps: Step[];
}
