/**
 * Draws a map on a canvas.
 *
 * States are drawn anew in each frame; that takes a few milliseconds for thousands. Edges, of which there may be tens of
 * thousands, are drawn on a layer of their own in slices between frames. While the view moves, the layer is moved with
 * it as an image, and it is drawn anew when the view rests.
 */

import { thumbnailPath } from "../service";
import { count, line } from "../words";
import { type Bounds, type Camera, between, fitCamera, zoomAt } from "./camera";
import { type DrawnEdges, KIND_GROUPS } from "./edges";
import { CARD_HEIGHT, CARD_WIDTH, type Layout } from "./layout";
import { edgesAt, type MapModel, STATE_CHANGING, titleOf } from "./model";
import { Thumbnails } from "./thumbnails";

export interface Scene {
  model: MapModel;
  layout: Layout;
  edges: DrawnEdges;
  /** Selected state; -1: none. */
  selected: number;
  /** States that match what is searched; null: nothing is searched. */
  matches: ReadonlySet<number> | null;
  /** Edges of the path that is shown. */
  path: readonly number[];
  /** State that something outside of the map points to; -1: none. */
  pointed: number;
}

/** Edges up to this number are drawn in each frame, as curves. */
const FEW_EDGES = 1_500;
/** Of up to this number of places small images are shown even if they are tiny. */
const FEW_PLACES = 150;
const SLICE_MS = 6;
const REST_MS = 140;
const MOVE_MS = 260;
/** At this scale it can be recognised what a state shows. */
const LEAST_CARD_SCALE = 0.3;

export class MapRenderer {
  camera: Camera = { x: 0, y: 0, scale: 1 };
  /** Called after each frame. */
  onDrawn: (() => void) | null = null;
  private readonly context: CanvasRenderingContext2D;
  private readonly thumbnails = new Thumbnails(() => this.redraw());
  private readonly colours = new Map<string, string>();
  private layer: { canvas: HTMLCanvasElement; camera: Camera } | null = null;
  private layerStale = true;
  private slice = 0;
  private restTimer = 0;
  private frame = 0;
  private animation = 0;
  /** Until something moves the view, it shows the whole map, also after a change of size. */
  private showsAll = true;
  private scene: Scene | null = null;
  private hovered = -1;
  private width = 1;
  private height = 1;
  private ratio = 1;
  private drawnOnce = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly site: string,
  ) {
    this.context = canvas.getContext("2d")!;
  }

  setScene(scene: Scene): void {
    const sameEdges = this.scene?.edges === scene.edges && this.scene.layout === scene.layout;
    this.scene = scene;
    if (!sameEdges) this.dropLayer();
    this.redraw();
  }

  resize(width: number, height: number): void {
    this.ratio = Math.min(2, devicePixelRatio);
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    this.dropLayer();
    if (this.showsAll && this.scene) {
      cancelAnimationFrame(this.animation);
      this.setCamera(fitCamera(this.boundsOf(), this.width, this.height));
    }
    this.redraw();
  }

  /** Read the colours of the style sheet again. */
  readColours(): void {
    const style = getComputedStyle(this.canvas);
    const names = ["bg", "surface", "text", "muted", "line", "accent", "match", "path", "placeholder"];
    for (const name of names) this.colours.set(name, style.getPropertyValue(`--${name}`).trim());
    for (const group of new Set(Object.values(KIND_GROUPS))) {
      this.colours.set(`edge-${group}`, style.getPropertyValue(`--edge-${group}`).trim());
    }
    this.colours.set("font", style.fontFamily);
    this.dropLayer();
    this.redraw();
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.animation);
    clearTimeout(this.restTimer);
    clearTimeout(this.slice);
  }

  // The view.

  fit(states?: readonly number[]): void {
    if (!this.scene) return;
    this.moveTo(fitCamera(this.boundsOf(states), this.width, this.height));
    this.showsAll = states === undefined;
  }

  /** Bring a state into view, zoomed in far enough to see what it is. */
  reveal(state: number): void {
    const at = this.placeOf(state);
    if (at < 0 || !this.scene) return;
    const { x, y } = this.scene.layout;
    const scale = Math.max(this.camera.scale, LEAST_CARD_SCALE);
    const halfWidth = this.width / 2 / this.camera.scale - CARD_WIDTH / 2;
    const halfHeight = this.height / 2 / this.camera.scale - CARD_HEIGHT;
    const isInside = Math.abs(x[at]! - this.camera.x) < halfWidth && Math.abs(y[at]! - this.camera.y) < halfHeight;
    if (!isInside || scale > this.camera.scale) this.moveTo({ x: x[at]!, y: y[at]!, scale });
  }

  pan(dx: number, dy: number): void {
    this.leaveView();
    const { x, y, scale } = this.camera;
    this.setCamera({ x: x - dx / scale, y: y - dy / scale, scale });
  }

  zoom(factor: number, clientX?: number, clientY?: number): void {
    this.leaveView();
    const box = this.canvas.getBoundingClientRect();
    const dx = clientX === undefined ? 0 : clientX - box.left - this.width / 2;
    const dy = clientY === undefined ? 0 : clientY - box.top - this.height / 2;
    const least = fitCamera(this.boundsOf(), this.width, this.height).scale * 0.5;
    this.setCamera(zoomAt(this.camera, factor, dx, dy, least));
  }

  /** Move a point of the map into the middle of the view. */
  centre(x: number, y: number): void {
    this.leaveView();
    this.setCamera({ x, y, scale: this.camera.scale });
  }

  get layout(): Layout | null {
    return this.scene?.layout ?? null;
  }

  /** The visible part of the map. */
  visible(): Bounds {
    const halfWidth = this.width / 2 / this.camera.scale;
    const halfHeight = this.height / 2 / this.camera.scale;
    const { x, y } = this.camera;
    return { left: x - halfWidth, right: x + halfWidth, top: y - halfHeight, bottom: y + halfHeight };
  }

  private setCamera(camera: Camera): void {
    this.camera = camera;
    this.thumbnails.forgetWanted();
    clearTimeout(this.slice);
    this.slice = 0;
    this.layerStale = true;
    clearTimeout(this.restTimer);
    this.restTimer = setTimeout(() => this.drawLayer(), REST_MS);
    this.redraw();
  }

  /** Stop an animation, and keep what is shown from now on. */
  private leaveView(): void {
    cancelAnimationFrame(this.animation);
    this.showsAll = false;
  }

  private moveTo(target: Camera): void {
    this.leaveView();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.setCamera(target);
      return;
    }
    const from = this.camera;
    const started = performance.now();
    const move = () => {
      const share = Math.min(1, (performance.now() - started) / MOVE_MS);
      this.setCamera(between(from, target, share));
      if (share < 1) this.animation = requestAnimationFrame(move);
    };
    move();
  }

  private boundsOf(states?: readonly number[]): Bounds {
    const layout = this.scene!.layout;
    const places = states?.map((state) => layout.placeOf[state]!).filter((place) => place >= 0);
    if (!places?.length) {
      return { left: 0, top: -layout.height / 2 - 20, right: layout.width, bottom: layout.height / 2 };
    }
    const xs = places.map((place) => layout.x[place]!);
    const ys = places.map((place) => layout.y[place]!);
    return {
      left: Math.min(...xs) - CARD_WIDTH,
      top: Math.min(...ys) - CARD_HEIGHT,
      right: Math.max(...xs) + CARD_WIDTH,
      bottom: Math.max(...ys) + CARD_HEIGHT,
    };
  }

  // What is where.

  /** The place at a point of the page; -1: none. */
  placeAt(clientX: number, clientY: number): number {
    if (!this.scene) return -1;
    const box = this.canvas.getBoundingClientRect();
    const x = (clientX - box.left - this.width / 2) / this.camera.scale + this.camera.x;
    const y = (clientY - box.top - this.height / 2) / this.camera.scale + this.camera.y;
    const slack = 3 / this.camera.scale;
    const { layout } = this.scene;
    for (let place = 0; place < layout.places.length; place++) {
      if (
        Math.abs(layout.x[place]! - x) <= CARD_WIDTH / 2 + slack &&
        Math.abs(layout.y[place]! - y) <= CARD_HEIGHT / 2 + slack
      ) {
        return place;
      }
    }
    return -1;
  }

  /** Position of a place in the view, in pixels. */
  screenPosition(place: number): { x: number; y: number } {
    const { layout } = this.scene!;
    return { x: this.screenX(layout.x[place]!), y: this.screenY(layout.y[place]!) };
  }

  setHovered(place: number): void {
    if (place === this.hovered) return;
    this.hovered = place;
    this.redraw();
  }

  private placeOf(state: number): number {
    return state >= 0 && this.scene ? this.scene.layout.placeOf[state]! : -1;
  }

  private screenX(x: number): number {
    return (x - this.camera.x) * this.camera.scale + this.width / 2;
  }

  private screenY(y: number): number {
    return (y - this.camera.y) * this.camera.scale + this.height / 2;
  }

  // Drawing.

  redraw(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    this.frame = 0;
    const scene = this.scene;
    if (!scene) return;
    const context = this.context;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = this.colour("bg");
    context.fillRect(0, 0, this.width, this.height);
    if (scene.edges.from.length <= FEW_EDGES) this.drawEdges(context, scene, 0, scene.edges.from.length, true);
    else this.drawMovedLayer(context);
    this.drawHighlightedEdges(scene);
    this.drawPlaces(scene);
    this.drawPath(scene);
    this.drawBands(scene);
    this.onDrawn?.();
    if (!this.drawnOnce) {
      this.drawnOnce = true;
      performance.mark("waygraph:map-drawn");
    }
  }

  private drawBands(scene: Scene): void {
    const context = this.context;
    const size = 12;
    context.font = `600 ${size}px ${this.colours.get("font")}`;
    context.textBaseline = "alphabetic";
    context.textAlign = "left";
    for (const band of scene.layout.bands) {
      const left = this.screenX(band.x);
      const width = band.width * this.camera.scale;
      if (left > this.width || left + width < 0) continue;
      const top = this.screenY(-scene.layout.height / 2);
      const far = band.depth === 0 ? "Start" : `${count(band.depth, "action")} away`;
      const full = band.states > 1 ? `${far} · ${count(band.states, "state")}` : far;
      const room = width + 60 * this.camera.scale;
      const label = [full, far].find((each) => context.measureText(each).width < room) ?? String(band.depth);
      const x = Math.max(8, left);
      const y = Math.max(20, top - 10);
      context.fillStyle = this.colour("bg");
      this.roundRect(x - 4, y - 14, context.measureText(label).width + 8, 20, 4);
      context.globalAlpha = 0.9;
      context.fill();
      context.globalAlpha = 1;
      context.fillStyle = this.colour("muted");
      context.fillText(label, x, y);
    }
  }

  private drawMovedLayer(context: CanvasRenderingContext2D): void {
    if (this.layer === null || (this.layerStale && !this.slice && !this.restTimer)) this.scheduleLayer();
    if (this.layer === null) return;
    const { canvas, camera } = this.layer;
    const scale = this.camera.scale / camera.scale;
    context.drawImage(
      canvas,
      this.width / 2 + (camera.x - this.camera.x) * this.camera.scale - (this.width * scale) / 2,
      this.height / 2 + (camera.y - this.camera.y) * this.camera.scale - (this.height * scale) / 2,
      this.width * scale,
      this.height * scale,
    );
  }

  private dropLayer(): void {
    clearTimeout(this.slice);
    this.slice = 0;
    this.layer = null;
    this.layerStale = true;
  }

  private scheduleLayer(): void {
    if (!this.slice) this.slice = setTimeout(() => this.drawLayer(), 0);
  }

  /** Draw all edges on a new layer, in slices, and show it when it is complete. */
  private drawLayer(): void {
    clearTimeout(this.slice);
    this.slice = 0;
    this.restTimer = 0;
    const scene = this.scene;
    if (!scene || scene.edges.from.length <= FEW_EDGES) return;
    const canvas = document.createElement("canvas");
    canvas.width = this.canvas.width;
    canvas.height = this.canvas.height;
    const context = canvas.getContext("2d")!;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    const camera = this.camera;
    let at = 0;
    const drawSlice = () => {
      const until = performance.now() + SLICE_MS;
      while (at < scene.edges.from.length && performance.now() < until) {
        this.drawEdges(context, scene, at, Math.min(at + 400, scene.edges.from.length), false);
        at += 400;
      }
      if (at < scene.edges.from.length) {
        this.slice = setTimeout(drawSlice, 4);
        return;
      }
      this.slice = 0;
      this.layer = { canvas, camera };
      this.layerStale = false;
      this.redraw();
      performance.mark("waygraph:edges-drawn");
    };
    drawSlice();
  }

  private drawEdges(context: CanvasRenderingContext2D, scene: Scene, start: number, end: number, curved: boolean): void {
    const { from, to, edge } = scene.edges;
    const dimmed = scene.path.length > 0 || scene.matches !== null;
    context.globalAlpha = (curved ? 0.5 : Math.max(0.06, Math.min(0.4, 1_500 / from.length))) * (dimmed ? 0.5 : 1);
    context.lineWidth = 1;
    const byColour = new Map<string, Path2D>();
    for (let at = start; at < end; at++) {
      if (!this.mayBeVisible(scene, from[at]!, to[at]!)) continue;
      const colour = this.edgeColour(scene, edge[at]!);
      let path = byColour.get(colour);
      if (path === undefined) byColour.set(colour, (path = new Path2D()));
      this.trace(path, scene, from[at]!, to[at]!, curved);
    }
    for (const [colour, path] of byColour) {
      context.strokeStyle = colour;
      context.stroke(path);
    }
    context.globalAlpha = 1;
  }

  private mayBeVisible(scene: Scene, from: number, to: number): boolean {
    const { x, y } = scene.layout;
    const halfWidth = this.width / 2 / this.camera.scale + CARD_WIDTH;
    const halfHeight = this.height / 2 / this.camera.scale + CARD_WIDTH;
    const dx1 = x[from]! - this.camera.x;
    const dx2 = x[to]! - this.camera.x;
    const dy1 = y[from]! - this.camera.y;
    const dy2 = y[to]! - this.camera.y;
    return !(
      (dx1 > halfWidth && dx2 > halfWidth) ||
      (dx1 < -halfWidth && dx2 < -halfWidth) ||
      (dy1 > halfHeight && dy2 > halfHeight) ||
      (dy1 < -halfHeight && dy2 < -halfHeight)
    );
  }

  /** Add an edge to a path: from the right side of a state to the left side of a later one, else around both. */
  private trace(path: Path2D, scene: Scene, from: number, to: number, curved: boolean): void {
    const { x, y } = scene.layout;
    const forward = x[to]! > x[from]! + CARD_WIDTH / 2;
    const half = (CARD_WIDTH / 2) * this.camera.scale;
    const x1 = this.screenX(x[from]!) + (forward ? half : x[to]! < x[from]! - CARD_WIDTH / 2 ? -half : half);
    const y1 = this.screenY(y[from]!);
    const x2 = this.screenX(x[to]!) + (forward ? -half : x[to]! < x[from]! - CARD_WIDTH / 2 ? half : half);
    const y2 = this.screenY(y[to]!);
    path.moveTo(x1, y1);
    if (!curved) path.lineTo(x2, y2);
    else if (forward) {
      const bend = Math.max(20 * this.camera.scale, (x2 - x1) * 0.45);
      path.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
    } else {
      const side = x2 < x1 ? -1 : 1;
      const bend = Math.max(40 * this.camera.scale, Math.abs(x2 - x1) * 0.4, Math.abs(y2 - y1) * 0.25) * side;
      path.bezierCurveTo(x1 + bend, y1, x2 - (x2 === x1 ? -bend : bend), y2, x2, y2);
    }
  }

  private drawHighlightedEdges(scene: Scene): void {
    const focus = scene.selected >= 0 ? scene.selected : -1;
    const drawn = new Set<number>();
    for (const state of focus >= 0 ? [focus] : []) {
      for (const edge of edgesAt(scene.model.outgoing, state)) drawn.add(edge);
    }
    if (this.hovered >= 0) {
      for (const edge of edgesAt(scene.model.outgoing, scene.layout.places[this.hovered]!)) drawn.add(edge);
    }
    const seen = new Set<number>();
    for (const edge of drawn) {
      const from = this.placeOf(scene.model.source[edge]!);
      const to = this.placeOf(scene.model.target[edge]!);
      const key = from * scene.layout.places.length + to;
      if (from < 0 || to < 0 || from === to || seen.has(key)) continue;
      seen.add(key);
      const isPointed = scene.pointed >= 0 && to === this.placeOf(scene.pointed);
      this.strokeEdge(scene, from, to, this.edgeColour(scene, edge), isPointed ? 3 : 1.4, isPointed ? 1 : 0.85, edge);
    }
  }

  /** The path lies above all states, which may stand between two of its own. */
  private drawPath(scene: Scene): void {
    for (const edge of scene.path) {
      const from = this.placeOf(scene.model.source[edge]!);
      const to = this.placeOf(scene.model.target[edge]!);
      if (from >= 0 && to >= 0 && from !== to) this.strokeEdge(scene, from, to, this.colour("path"), 3.5, 1, edge);
    }
  }

  private strokeEdge(
    scene: Scene,
    from: number,
    to: number,
    colour: string,
    width: number,
    alpha: number,
    edge: number,
  ): void {
    const path = new Path2D();
    this.trace(path, scene, from, to, true);
    this.context.globalAlpha = alpha;
    this.context.strokeStyle = colour;
    this.context.lineWidth = width;
    this.context.setLineDash(scene.model.flags[edge]! & STATE_CHANGING ? [5, 4] : []);
    this.context.stroke(path);
    this.context.setLineDash([]);
    this.context.globalAlpha = 1;
  }

  private edgeColour(scene: Scene, edge: number): string {
    const kind = scene.model.answer.kinds[scene.model.kind[edge]!]!;
    return this.colour(`edge-${KIND_GROUPS[kind] ?? "click"}`);
  }

  private drawPlaces(scene: Scene): void {
    const { layout, matches } = scene;
    const scale = this.camera.scale;
    const width = CARD_WIDTH * scale;
    const height = CARD_HEIGHT * scale;
    const onPath = new Set(scene.path.flatMap((edge) => [scene.model.source[edge]!, scene.model.target[edge]!]));
    const marked = new Set([...onPath].map((state) => this.placeOf(state)));
    const selected = this.placeOf(scene.selected);
    const pointed = this.placeOf(scene.pointed);
    const withImages = width >= (layout.places.length <= FEW_PLACES ? 24 : 44);
    const matching = matches === null ? null : new Set([...matches].map((state) => this.placeOf(state)));
    for (let place = 0; place < layout.places.length; place++) {
      const left = this.screenX(layout.x[place]!) - width / 2;
      const top = this.screenY(layout.y[place]!) - height / 2;
      if (left > this.width || top > this.height || left + width < 0 || top + height + 30 < 0) continue;
      const isDim = (matching !== null && !matching.has(place)) || (onPath.size > 0 && !marked.has(place));
      this.context.globalAlpha = isDim ? 0.22 : 1;
      if (withImages) this.drawCard(scene, place, left, top, width, height);
      else this.drawDot(scene, place, left, top, width, height, matching?.has(place) ?? false);
      this.context.globalAlpha = 1;
      const isMarked = place === selected || place === pointed || place === this.hovered || marked.has(place);
      if (isMarked || (matching?.has(place) && withImages)) {
        const colour = marked.has(place) ? "path" : place === selected || place === pointed ? "accent" : "match";
        this.context.strokeStyle = this.colour(place === this.hovered && !marked.has(place) ? "accent" : colour);
        this.context.lineWidth = place === selected || place === pointed ? 3 : 2;
        this.roundRect(left - 2, top - 2, width + 4, height + 4, Math.min(8, 8 * scale + 2));
        this.context.stroke();
      }
    }
  }

  private drawDot(
    scene: Scene,
    place: number,
    left: number,
    top: number,
    width: number,
    height: number,
    isMatch: boolean,
  ): void {
    const least = Math.max(2, width);
    this.context.fillStyle = this.colour(isMatch ? "match" : scene.layout.counts[place]! > 1 ? "accent" : "placeholder");
    this.context.fillRect(left, top, least, Math.max(1.5, height));
    if (width >= 14) {
      this.context.strokeStyle = this.colour("muted");
      this.context.lineWidth = 0.5;
      this.context.strokeRect(left, top, width, height);
    }
  }

  private drawCard(scene: Scene, place: number, left: number, top: number, width: number, height: number): void {
    const context = this.context;
    const { model, layout } = scene;
    const state = layout.places[place]!;
    const members = layout.counts[place]!;
    const radius = Math.min(6, 6 * this.camera.scale + 1);
    for (const offset of members > 1 ? [6, 3, 0] : [0]) {
      const shift = offset * Math.min(1, this.camera.scale * 1.4);
      this.roundRect(left + shift, top - shift, width, height, radius);
      context.fillStyle = this.colour("surface");
      context.fill();
      context.strokeStyle = this.colour("line");
      context.lineWidth = 1;
      context.stroke();
    }
    const screenshot = model.answer.states.screenshot[state]!;
    const image = screenshot
      ? this.thumbnails.get(thumbnailPath(this.site, model.answer.states.id[state]!, screenshot))
      : null;
    if (image !== null) {
      context.save();
      this.roundRect(left, top, width, height, radius);
      context.clip();
      context.drawImage(image, left, top, width, height);
      context.restore();
      this.roundRect(left, top, width, height, radius);
      context.strokeStyle = this.colour("line");
      context.stroke();
    }
    if (members > 1) this.drawCount(left + width, top, members);
    if (width < 64) return;
    const size = Math.max(10, Math.min(13, 12 * this.camera.scale + 3));
    const room = Math.floor(width / (size * 0.53));
    context.font = `${size}px ${this.colours.get("font")}`;
    context.textAlign = "left";
    context.textBaseline = "top";
    context.fillStyle = this.colour("text");
    const title = members > 1 ? model.answer.groups[model.answer.states.group[state]!]! : titleOf(model, state);
    context.fillText(line(title, room), left, top + height + 5);
  }

  private drawCount(right: number, top: number, members: number): void {
    const context = this.context;
    const text = String(members);
    context.font = `600 12px ${this.colours.get("font")}`;
    const width = Math.max(20, context.measureText(text).width + 12);
    this.roundRect(right - width + 8, top - 12, width, 20, 10);
    context.fillStyle = this.colour("accent");
    context.fill();
    context.fillStyle = this.colour("surface");
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(text, right - width / 2 + 8, top - 1.5);
  }

  private roundRect(left: number, top: number, width: number, height: number, radius: number): void {
    this.context.beginPath();
    this.context.roundRect(left, top, width, height, radius);
  }

  colour(name: string): string {
    return this.colours.get(name) || "#888";
  }
}

