/** Files that replay a teleport or an agent's run, as `waygraph/core/replay_file.py` defines them. */

export interface ReplayPage {
  nodeId: string;
  url: string;
  title: string;
  /** Address of the screenshot (`blob:`); empty: there is none. */
  image: string;
  /** What an agent read; empty: it is not known. */
  text: string;
}

export interface Usage {
  model: string;
  calls: number;
  inputTokens: number;
  outputTokens: number;
  seconds: number;
  cost: number | null;
}

export interface ReplayStep {
  action: string;
  status: string;
  /** Whether the step led where the map says; null: nothing was expected of it. */
  agrees: boolean | null;
  message: string;
  ms: number | null;
  before: ReplayPage | null;
  expected: ReplayPage | null;
  after: ReplayPage | null;
  thinking: string;
  usage: Usage | null;
  /** What else was recorded, as JSON text; empty: nothing. */
  details: string;
}

export interface TreeAction {
  text: string;
  score: number;
  status: string;
  reason: string;
  /** Number of the state that it led to; null: none. */
  result: number | null;
  proposedBy: string[];
  merged: string[];
  changesData: boolean;
  isKnown: boolean;
}

/** A state that a tree search visited. Its number is its position in the list. */
export interface TreeNode {
  /** Null: a root. Smaller than its own number. */
  parent: number | null;
  /** The step that led here first, from 1; 0: none did. */
  step: number;
  title: string;
  url: string;
  image: string;
  value: number | null;
  mapState: string;
  sameAs: number | null;
  problem: string;
  notes: string[];
  isAnswer: boolean;
  actions: TreeAction[];
  actionsLeftOut: number;
}

export interface TreeReturn {
  target: number;
  tried: string[];
  arrived: boolean;
  problem: string;
}

export interface TreeStep {
  /** Returns that were made for the step. */
  returns: TreeReturn[];
  node: number | null;
  /** Empty: the search ended after the returns. */
  action: string;
  status: string;
  result: number | null;
  score: number | null;
  rule: string;
  changed: string[];
}

export interface SearchTree {
  nodes: TreeNode[];
  nodesLeftOut: number;
  steps: TreeStep[];
  known: { value: number; title: string; url: string; seenFrom: number }[];
  knownTotal: number;
  counts: [string, number][];
}

export interface Replay {
  kind: "teleport" | "agent";
  created: string;
  title: string;
  site: string;
  facts: [string, string][];
  outcome: { status: string; good: boolean | null; message: string; answer: string; url: string } | null;
  steps: ReplayStep[];
  /** The tree of a search; null: the agent was none. */
  tree: SearchTree | null;
  imagesLeftOut: number;
}

/** Where the images and texts are that a replay names by keys. */
export interface ReplayContents {
  /** Address of an image; empty: it is not there. */
  image(key: string): string;
  /** A text; empty: it is not there. */
  text(key: string): string;
}

/** A file that cannot be shown, with what can be done about it. */
export class UnreadableReplay extends Error {
  constructor(
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

const FORMAT = "waygraph-replay";
const VERSION = 1;
/** The writer allows 48 MiB of screenshots, which data URLs make a third larger. */
const MAX_BYTES = 100 * 2 ** 20;
const HOW = "Make one with: waygraph teleport … --trace FILE, or waygraph tasks trace RUN TASK -o FILE.";
/** SVG, which may contain scripts, is not among them. */
const IMAGE = /^data:(image\/(?:jpeg|png));base64,([A-Za-z0-9+/]*={0,2})$/;

type Fields = Record<string, unknown>;

export async function readReplay(file: File): Promise<Replay> {
  if (file.size > MAX_BYTES) throw new UnreadableReplay("The file is too large to be a replay.", HOW);
  let document: unknown;
  try {
    document = JSON.parse(await file.text());
  } catch {
    throw new UnreadableReplay("The file is no JSON document.", HOW);
  }
  return parseReplay(document);
}

export function parseReplay(document: unknown): Replay {
  const fields = fieldsOf(document);
  if (fields["format"] !== FORMAT) throw new UnreadableReplay("The file is no replay of waygraph.", HOW);
  if (fields["version"] !== VERSION) {
    throw new UnreadableReplay(
      `The replay has version ${text(fields["version"]) || "unknown"}; this page reads version ${VERSION}.`,
      "Use the version of waygraph that wrote it, or write it again.",
    );
  }
  if (!Array.isArray(fields["steps"])) throw new UnreadableReplay("The replay has no list of steps.", HOW);
  const images = new Images(fieldsOf(fields["images"]));
  const texts = fieldsOf(fields["texts"]);
  return replayOf(fields, {
    image: (key) => images.address(key),
    text: (key) => (Object.hasOwn(texts, key) ? text(texts[key]) : ""),
  });
}

/** A replay from the fields of its file; what is missing or of another type is left out. */
export function replayOf(fields: Fields, contents: ReplayContents): Replay {
  const outcome = fields["outcome"] ? fieldsOf(fields["outcome"]) : null;
  return {
    kind: fields["kind"] === "agent" ? "agent" : "teleport",
    created: text(fields["created"]),
    title: text(fields["title"]),
    site: text(fields["site"]),
    facts: Object.entries(fieldsOf(fields["facts"])).map(([name, value]): [string, string] => [name, text(value)]),
    outcome: outcome && {
      status: text(outcome["status"]),
      good: yesOrNo(outcome["good"]),
      message: text(outcome["message"]),
      answer: text(outcome["answer"]),
      url: text(outcome["url"]),
    },
    steps: listOf(fields["steps"]).map((step) => stepOf(step, contents)),
    tree: fields["tree"] ? treeOf(fieldsOf(fields["tree"]), contents) : null,
    imagesLeftOut: numberOf(fields["images_left_out"]) ?? 0,
  };
}

/** Screenshots as `blob:` addresses: the policy of the page allows no `data:` addresses. */
class Images {
  private readonly made = new Map<string, string>();

  constructor(private readonly urls: Fields) {}

  address(key: string): string {
    let found = this.made.get(key);
    if (found === undefined) {
      const [, type, encoded] = IMAGE.exec(Object.hasOwn(this.urls, key) ? text(this.urls[key]) : "") ?? [];
      found = type && encoded ? blobAddress(type, encoded) : "";
      this.made.set(key, found);
    }
    return found;
  }
}

function blobAddress(type: string, encoded: string): string {
  let binary: string;
  try {
    binary = atob(encoded);
  } catch {
    return ""; // shown as missing
  }
  return URL.createObjectURL(new Blob([Uint8Array.from(binary, (each) => each.charCodeAt(0))], { type }));
}

/** Release the screenshots of a replay that is no longer shown. */
export function release(replay: Replay): void {
  for (const step of replay.steps) {
    for (const page of [step.before, step.expected, step.after]) if (page?.image) URL.revokeObjectURL(page.image);
  }
  for (const node of replay.tree?.nodes ?? []) if (node.image) URL.revokeObjectURL(node.image);
}

function stepOf(step: Fields, contents: ReplayContents): ReplayStep {
  const details = fieldsOf(step["details"]);
  return {
    action: text(step["action"]),
    status: text(step["status"]),
    agrees: yesOrNo(step["agrees"]),
    message: text(step["message"]),
    ms: numberOf(step["ms"]),
    before: pageOf(step["before"], contents),
    expected: pageOf(step["expected"], contents),
    after: pageOf(step["after"], contents),
    thinking: text(step["thinking"]),
    usage: step["usage"] ? usageOf(fieldsOf(step["usage"])) : null,
    details: Object.keys(details).length ? JSON.stringify(details, null, 1) : "",
  };
}

function pageOf(value: unknown, contents: ReplayContents): ReplayPage | null {
  if (!value) return null;
  const page = fieldsOf(value);
  return {
    nodeId: text(page["node_id"]),
    url: text(page["url"]),
    title: text(page["title"]),
    image: contents.image(text(page["screenshot"])),
    text: contents.text(text(page["text"])),
  };
}

function treeOf(tree: Fields, contents: ReplayContents): SearchTree {
  const listed = listOf(tree["nodes"]);
  /** Number of a state that is in the list. */
  const stateOf = (value: unknown) => {
    const found = numberOf(value);
    return found !== null && Number.isInteger(found) && found >= 0 && found < listed.length ? found : null;
  };
  return {
    nodes: listed.map((node, at) => {
      const parent = stateOf(node["parent"]);
      return {
        parent: parent !== null && parent < at ? parent : null,
        step: numberOf(node["step"]) ?? 0,
        title: text(node["title"]),
        url: text(node["url"]),
        image: contents.image(text(node["screenshot"])),
        value: numberOf(node["value"]),
        mapState: text(node["map_state"]),
        sameAs: stateOf(node["same_as"]),
        problem: text(node["problem"]),
        notes: textsOf(node["notes"]),
        isAnswer: node["is_answer"] === true,
        actions: listOf(node["actions"]).map((action) => ({
          text: text(action["text"]),
          score: numberOf(action["score"]) ?? 0,
          status: text(action["status"]),
          reason: text(action["reason"]),
          result: stateOf(action["result"]),
          proposedBy: textsOf(action["proposed_by"]),
          merged: textsOf(action["merged"]),
          changesData: action["changes_data"] === true,
          isKnown: action["is_known"] === true,
        })),
        actionsLeftOut: numberOf(node["actions_left_out"]) ?? 0,
      };
    }),
    nodesLeftOut: numberOf(tree["nodes_left_out"]) ?? 0,
    steps: listOf(tree["steps"]).map((step) => ({
      returns: listOf(step["returns"]).map((each) => ({
        target: numberOf(each["target"]) ?? 0,
        tried: textsOf(each["tried"]),
        arrived: each["arrived"] === true,
        problem: text(each["problem"]),
      })),
      node: stateOf(step["node"]),
      action: text(step["action"]),
      status: text(step["status"]),
      result: stateOf(step["result"]),
      score: numberOf(step["score"]),
      rule: text(step["rule"]),
      changed: textsOf(step["changed"]),
    })),
    known: listOf(tree["known"]).map((each) => ({
      value: numberOf(each["value"]) ?? 0,
      title: text(each["title"]),
      url: text(each["url"]),
      seenFrom: numberOf(each["seen_from"]) ?? 0,
    })),
    knownTotal: numberOf(tree["known_total"]) ?? 0,
    counts: Object.entries(fieldsOf(tree["counts"])).map(([name, value]): [string, number] => [name, numberOf(value) ?? 0]),
  };
}

function usageOf(usage: Fields): Usage {
  return {
    model: text(usage["model"]),
    calls: numberOf(usage["calls"]) ?? 0,
    inputTokens: numberOf(usage["input_tokens"]) ?? 0,
    outputTokens: numberOf(usage["output_tokens"]) ?? 0,
    seconds: numberOf(usage["seconds"]) ?? 0,
    cost: numberOf(usage["cost"]),
  };
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(text) : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function yesOrNo(value: unknown): boolean | null {
  return typeof value === "boolean" ? value : null;
}
