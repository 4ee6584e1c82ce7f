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

export interface Replay {
  kind: "teleport" | "agent";
  created: string;
  title: string;
  site: string;
  facts: [string, string][];
  outcome: { status: string; good: boolean | null; message: string; answer: string; url: string } | null;
  steps: ReplayStep[];
  imagesLeftOut: number;
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
  const contents = { images: new Images(fieldsOf(fields["images"])), texts: fieldsOf(fields["texts"]) };
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
    steps: fields["steps"].map((step) => stepOf(fieldsOf(step), contents)),
    imagesLeftOut: numberOf(fields["images_left_out"]) ?? 0,
  };
}

interface Contents {
  images: Images;
  texts: Fields;
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
}

function stepOf(step: Fields, contents: Contents): ReplayStep {
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

function pageOf(value: unknown, { images, texts }: Contents): ReplayPage | null {
  if (!value) return null;
  const page = fieldsOf(value);
  const read = text(page["text"]);
  return {
    nodeId: text(page["node_id"]),
    url: text(page["url"]),
    title: text(page["title"]),
    image: images.address(text(page["screenshot"])),
    text: Object.hasOwn(texts, read) ? text(texts[read]) : "",
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

function text(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function yesOrNo(value: unknown): boolean | null {
  return typeof value === "boolean" ? value : null;
}
