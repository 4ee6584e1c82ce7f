/** The content of report files, as `waygraph/core/report_file.py` and the modules that make reports write it. */

import type { ChangesAnswer, GraphAnswer, SiteCard } from "../types";

interface Common {
  title: string;
  /** When the report was made (ISO 8601). */
  made: string;
  /** Data URLs of images by key. */
  images: Record<string, string>;
}

export type ReportDocument =
  | (Common & { kind: "site"; content: SiteContent })
  | (Common & { kind: "run"; content: RunContent })
  | (Common & { kind: "changes"; content: ChangesContent })
  | (Common & { kind: "agents"; content: AgentsContent })
  | (Common & { kind: "repeats"; content: RepeatsContent });

export interface ReasonCount {
  reason: string;
  count: number;
  example: string;
}

export interface OutcomeRow {
  status: "skipped" | "failed" | "pending";
  element: string;
  reason: string;
  detail: string;
  rule: string;
  target: string;
  /** Index of the state in the graph; -1: it is not in the map. */
  state: number;
}

/** `waygraph/serve/views/site_report.py` */
export interface SiteContent {
  card: SiteCard;
  graph: GraphAnswer;
  versions: number[];
  depths: { depth: number; states: number; activations: number; seconds: number }[];
  /** Discovered elements by outcome; null: the version was published without their table. */
  elements: Record<"done" | "skipped" | "failed" | "pending", number> | null;
  skipped: ReasonCount[];
  failed: ReasonCount[];
  /** Examples of elements that are not in the map, failed ones first. */
  outcomes: OutcomeRow[];
  outcomes_total: number;
  /** Indexes of the states of the contact sheet. */
  sheet: number[];
  advice: string[];
}

export interface Quartiles {
  least: number;
  lower: number;
  median: number;
  upper: number;
  most: number;
  total: number;
  count: number;
}

export interface DepthFindings {
  depth: number;
  sites: number;
  states: number;
  activations: number;
  seconds: number;
  velocity: Quartiles;
}

export interface RoundRecord {
  activations: number;
  gain: number;
}

export interface RunReason {
  reason: string;
  count: number;
  sites: number;
  example: string;
}

export interface RunFindings {
  totals: Record<"sites" | "published" | "unchanged" | "failed" | "interrupted" | "states" | "edges", number>;
  depths: DepthFindings[];
  states_per_site: Quartiles | null;
  states_histogram: [number, number][];
  seconds_per_site: Quartiles | null;
  seconds_histogram: [number, number][];
  errors: RunReason[];
  stopped: RunReason[];
  skipped: RunReason[];
  failed: RunReason[];
  promising: { site: string; states: number; stopped_by: string; expected_gain: number; rounds: RoundRecord[] }[];
  retried: number;
  without_vectors: number;
}

/** `waygraph/pipeline/jobs/report/report_page.py` */
export interface RunContent {
  run_id: string;
  store: string;
  work: string;
  started: string;
  finished: string;
  seconds: number;
  calls: { number: number; started: string; seconds: number }[];
  calls_total: number;
  stopped_by: string;
  unfinished: number;
  phases: Record<string, number>;
  findings: RunFindings;
  /** Number of states of each map, the largest first: of all if they are few, else of the largest. */
  sizes: [string, number][];
  sheet: { site: string; states: number; image: string | null; problem: string }[];
  failed: { site: string; title: string; attempts: number; message: string }[];
  others: {
    site: string;
    status: string;
    attempts: number;
    states: number | null;
    actions: number | null;
    seconds: number;
    partial: string;
  }[];
}

/** `waygraph/serve/views/changes_report.py` */
export interface ChangesContent {
  changes: ChangesAnswer;
  /** Screenshots that did not fit into the file. */
  left_out: number;
}

/** Numbers of a group of tasks: `waygraph/agents/scoring/figures.py`. */
export interface GroupFigures {
  name: string;
  tasks: number;
  successes: number;
  undecided: number;
  done: number;
  steps: number;
  seconds: number | null;
  input_tokens: number;
  output_tokens: number;
  cost: number | null;
  /** Means are over the tasks with a result; null: there is none. */
  mean_steps: number | null;
  mean_seconds: number | null;
  mean_input_tokens: number | null;
  mean_output_tokens: number | null;
}

export interface TaskCheck {
  subject: string;
  rule: string;
  score: number | null;
  expected: string;
  found: string;
  note: string;
}

export interface AgentTask {
  id: string;
  /** Null: the task has no reward. */
  success: boolean | null;
  reward: number | null;
  checks: TaskCheck[];
  problem: string;
  /** Null: the task has no result. */
  result: {
    intent: string;
    start_urls: string[];
    site: string;
    ended: string;
    answer: string;
    url: string;
    steps: number;
    seconds: number | null;
    tokens: number;
    calls: number;
    cost: number | null;
  } | null;
  /** A replay without images and texts, as `replay/file.ts` reads it; null: it is not in the file. */
  replay: Record<string, unknown> | null;
}

/** `waygraph/agents/run_report/page.py`: a run of agents. */
export interface AgentsContent {
  name: string;
  created: string;
  labels: Record<string, string>;
  /** Numbers of tasks by what gave them their rewards, such as a dialect. */
  scorers: Record<string, number>;
  /** 95% interval of the rate of success; null: some task has no reward. */
  interval: [number, number] | null;
  task_file: { name: string; sha256: string };
  /** Numbers of tasks without a reward, by what they lack. */
  needs: Record<string, number>;
  all: GroupFigures;
  /** By what makes them: `site`, `evaluator`, or a label of the tasks. */
  groups: Record<string, GroupFigures[]>;
  tasks: AgentTask[];
  /** What agents read, by the keys in their replays. */
  texts: Record<string, string>;
  left_out: Record<"tasks" | "traces" | "images" | "texts", number>;
}

/** A run of agents in which each task was done several times. */
export interface RepeatsContent {
  name: string;
  mean_success: number;
  spread: number | null;
  lowest: number;
  highest: number;
  undecided: number;
  repeats: { link: string; successes: number; tasks: number }[];
  tasks: { id: string; successes: number }[];
  left_out: number;
}
