// Types of the in-page script for `tsc --checkJs`; not part of the script. All parts in js/ share one scope.

declare const KEY: "\0waygraph";

interface Window {
  [KEY]: WaygraphScript;
}

/** Properties that TypeScript does not know yet. */
interface CSSStyleDeclaration {
  interactivity: string;
  interestDelayEnd: string;
  interestDelayStart: string;
  scrollMarkerGroup: string;
}

/** `window["\0waygraph"]`, see api.js. */
interface WaygraphScript {
  guarded: boolean;
  acceptsDialogs: boolean;
  isQuiet(quietMs: number, since: number, code: SnapshotOptions["code"]): boolean;
  hasModules(): boolean;
  markSettled(): void;
  takeActivity(): ActivityReport;
  ownSuspects(): Element[];
  forgetSuspects(): void;
  [name: string]: any;
}

/** `SnapshotOptions.to_js` in snapshot.py, with what single calls add. */
interface SnapshotOptions {
  hovering: boolean;
  roles: string[];
  hover: boolean;
  maxSegments: number;
  quietMs: number;
  timerHorizonMs: number;
  capMs: number;
  submitSearch: boolean;
  /** Whether to compute the digest. */
  digest?: boolean;
  /** Return a snapshot if the digest is another one. */
  unlessDigest?: string;
  /** Whether the caller extends the cap of a page that is still loading. */
  mayExtend?: boolean;
  /** Whether the caller can check suspects for closed shadow roots. */
  reportsSuspects?: boolean;
  /** `report`: the caller can check what modules load, and wants to. `arrived`: it did. Absent: it cannot. */
  code?: "report" | "arrived";
  /** Position of this document in the page, in a cross-origin frame. */
  origin?: Point;
  /** Whether an agent observes: add the accessibility tree, and make every field a candidate. */
  outline?: boolean;
  /** Signs of waiting that stay on pages of the site. */
  lastingSigns?: string[];
  /** Kind of the action, for `passOverElement`. */
  kind?: string;
  /** Whether to note what the page has before the action, see revert.js. */
  notes?: boolean;
}

interface Settled {
  capped: boolean;
  /** Whether the page was not quiet at once. */
  waited: boolean;
  /** Signs that the page waits at the end, and those that went away, see waiting.js. */
  waiting: string[];
  ended: string[];
  ms: number;
}

/** A tab that was not opened; a script may set its address later. */
interface Tab {
  url: string;
}

interface ActivityReport {
  opened: number;
  tabs: string[];
  stopped: [string, string][];
  dialogs: string[];
}

interface Point {
  x: number;
  y: number;
}

interface Edges {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

interface Rect extends Edges {
  width: number;
  height: number;
}

interface TextHash {
  feed(text: string): void;
  hex(): string;
}

/** Event types by element. */
type Handlers = Map<Element, Set<string>>;

/** Kind and value of an action, see `Action` in index/graph. */
type ActionKind = [kind: string, value: string];

interface Candidate {
  kind: string;
  value: string;
  role: string;
  name: string;
  method: string;
  handler: string;
  icon: string;
  place: number;
  /** Number of the document. */
  frame: number;
  css: string;
  target: string;
  tag: string;
  disabled: boolean;
  submits: string;
  /** For submitting a search: what makes its form distinct. */
  form: string;
  download: boolean;
  covered: boolean;
  /** `list` or `page`: where a listener is that may mean the element, see items.js. */
  listener: string;
  /** Number among the candidates of the same kind, role and name. */
  nth: number;
  box: [number, number, number, number];
}

/** A candidate in a virtual list, with its path instead of a place. */
type Row = Candidate & { path: string };

/** An action as it was recorded, see `Action` in index/graph. */
interface RecordedAction {
  kind: string;
  value: string;
  role: string;
  name: string;
  target: string;
  xpath: string;
  css: string;
  nth: number;
  frame: string[];
}

type Rung = "exact" | "role" | "xpath" | "css";
/** For a control of carousels.js: its element, and its own name. */
type FoundElement = [element: any, rung: Rung, pseudo?: string];

/** An element, the path of child numbers from it to the element of an action, and the marks of its siblings. */
interface ChoicePeers {
  node: any;
  path: number[];
  marks: Map<any, Set<string>>;
}

/** Why an element takes no pointer: a `FailureKind` of failures.py, and a description. */
interface Obstacle {
  obstacle: [kind: string, description: string];
}

/** Where a cross-origin frame is: its path, the page coordinates of its document, and how much precedes it. */
interface FramePlace {
  path: string[];
  origin: Point;
  candidates: number;
  segments: number;
  /** The first row behind the frame's own, and the depth of its content. */
  outline?: { at: number; depth: number };
}

/** A node of the accessibility tree, see outline.js. */
type OutlineRow = [depth: number, role: string, name: string, states: [string, string][], candidate: number];

/** State of one pass over the page, see pass.js. */
interface Pass {
  options: SnapshotOptions;
  /** The only element to consider. */
  only: Element | null;
  /** The element that must be exposed for `only`: itself, or the image of an area. */
  shown: any;
  /** Roles of elements that are clicked. */
  roles: Set<string>;
  /** XPath step of each place. */
  steps: string[];
  /** Number of each place's parent, or -1 - number of its document. */
  parents: number[];
  /** Places that are no part of the structure: only a place inside them is exposed, or they are exposed by listeners. */
  unexposed: number[];
  /** XPaths of the frames that lead to each document. */
  documents: string[][];
  candidates: Candidate[];
  /** Elements of the candidates. */
  elements: any[];
  segments: [string, string, number, number, number, number][];
  /** Texts that are shown when they are opened or found. */
  hidden: [string, string, number, number, number, number][];
  crossOrigin: Map<Element, FramePlace>;
  inlineOnly: Map<Element, boolean>;
  /** Of every element that was entered, if an outline is wanted. */
  positions: Map<any, Position> | null;
  counts: { exposed: number; clicks: number; segmentsCut: number };
}

/** A document in a pass. */
interface DocumentContext {
  number: number;
  /** Position of the document in the page. */
  origin: Point;
  /** The whole document, in coordinates of its window. */
  view: Edges;
  /** The dialog that makes everything else inert. */
  modal: Element | null;
  /** Elements that reveal something when they are hovered. */
  hovers: Set<Element>;
  /** SVG elements that contain links or elements with listeners. */
  activeSvgs: Set<Element>;
  handlers: Handlers;
}

/** An element in a pass, as far as its children need to know it. */
interface Position {
  up: Position | null;
  context: DocumentContext;
  step: string;
  /** Number of its place; null until it is needed. */
  place: number | null;
  style: CSSStyleDeclaration | null;
  /** The rectangle in which its children can be visible. */
  clip: Edges;
  rect: Rect;
  exposed: boolean;
  /** Whether it is the modal dialog or inside it; true everywhere without one. */
  inFront: boolean;
  /** Whether it is part of an element that is clicked as a whole. */
  insideClicked: boolean;
  hasPointerCursor: boolean;
  /** Whether its texts are part of a segment of an ancestor. */
  isTextTaken: boolean;
  inSvg: boolean;
  /** Whether a box around it shows scroll markers, see carousels.js. */
  hasMarkers: boolean;
  /** Number of the candidate for a click on it, if nothing inside it is clicked; -1: none. */
  pendingClick: number;
}
