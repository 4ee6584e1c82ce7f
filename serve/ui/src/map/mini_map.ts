/** The whole map in a corner of the view, with a frame around the visible part; dragging moves the view. */

import { CARD_HEIGHT, CARD_WIDTH, type Layout } from "./layout";
import type { MapRenderer } from "./renderer";

const MAX_WIDTH = 168;
const MAX_HEIGHT = 104;
const MARGIN = 6;

export class MiniMap {
  private readonly context: CanvasRenderingContext2D;
  /** The states, drawn once for each layout and theme. */
  private states: { canvas: HTMLCanvasElement; layout: Layout; colour: string } | null = null;
  private scale = 1;
  private dragged = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly renderer: MapRenderer,
  ) {
    this.context = canvas.getContext("2d")!;
    renderer.onDrawn = () => this.draw();
    canvas.addEventListener("mousedown", keepFocus);
    canvas.addEventListener("pointerdown", this.down);
    canvas.addEventListener("pointermove", this.move);
    canvas.addEventListener("pointerup", this.up);
    canvas.addEventListener("pointercancel", this.up);
  }

  destroy(): void {
    this.renderer.onDrawn = null;
    this.canvas.removeEventListener("mousedown", keepFocus);
    this.canvas.removeEventListener("pointerdown", this.down);
    this.canvas.removeEventListener("pointermove", this.move);
    this.canvas.removeEventListener("pointerup", this.up);
    this.canvas.removeEventListener("pointercancel", this.up);
  }

  private draw(): void {
    const layout = this.renderer.layout;
    const seen = this.renderer.visible();
    const isWhole =
      layout === null ||
      (seen.left <= 0 && seen.right >= layout.width && seen.top <= -layout.height / 2 && seen.bottom >= layout.height / 2);
    // While everything is visible there is nothing to find; a drag ends where it began, though.
    this.canvas.hidden = isWhole && !this.dragged;
    if (layout === null || this.canvas.hidden) return;
    const states = this.statesOf(layout);
    const { width, height } = this.canvas;
    const ratio = this.ratio();
    const { context } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, width, height);
    context.drawImage(states, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const left = Math.max(1, this.x(seen.left));
    const top = Math.max(1, this.y(seen.top, layout));
    const right = Math.min(width / ratio - 1, this.x(seen.right));
    const bottom = Math.min(height / ratio - 1, this.y(seen.bottom, layout));
    context.strokeStyle = this.renderer.colour("accent");
    context.lineWidth = 1.5;
    context.strokeRect(left, top, Math.max(3, right - left), Math.max(3, bottom - top));
  }

  private statesOf(layout: Layout): HTMLCanvasElement {
    const colour = this.renderer.colour("placeholder");
    const known = this.states;
    if (known !== null && known.layout === layout && known.colour === colour) return known.canvas;
    this.scale = Math.min((MAX_WIDTH - 2 * MARGIN) / layout.width, (MAX_HEIGHT - 2 * MARGIN) / layout.height);
    const ratio = this.ratio();
    const width = layout.width * this.scale + 2 * MARGIN;
    const height = layout.height * this.scale + 2 * MARGIN;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const canvas = document.createElement("canvas");
    canvas.width = this.canvas.width;
    canvas.height = this.canvas.height;
    const context = canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colour;
    const cardWidth = Math.max(1, CARD_WIDTH * this.scale);
    const cardHeight = Math.max(1, CARD_HEIGHT * this.scale);
    for (let place = 0; place < layout.places.length; place++) {
      const x = this.x(layout.x[place]!) - cardWidth / 2;
      context.fillRect(x, this.y(layout.y[place]!, layout) - cardHeight / 2, cardWidth, cardHeight);
    }
    this.states = { canvas, layout, colour };
    return canvas;
  }

  private x(x: number): number {
    return MARGIN + x * this.scale;
  }

  private y(y: number, layout: Layout): number {
    return MARGIN + (y + layout.height / 2) * this.scale;
  }

  private ratio(): number {
    return Math.min(2, devicePixelRatio);
  }

  private readonly down = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.dragged = true;
    this.centreAt(event);
  };

  private readonly move = (event: PointerEvent): void => {
    if (this.dragged) this.centreAt(event);
  };

  private readonly up = (): void => {
    this.dragged = false;
    this.renderer.redraw();
  };

  private centreAt(event: PointerEvent): void {
    const layout = this.renderer.layout;
    if (layout === null) return;
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - this.canvas.clientLeft - MARGIN) / this.scale;
    const y = (event.clientY - box.top - this.canvas.clientTop - MARGIN) / this.scale - layout.height / 2;
    this.renderer.centre(
      Math.min(layout.width, Math.max(0, x)),
      Math.min(layout.height / 2, Math.max(-layout.height / 2, y)),
    );
  }
}

/** The keys of the map work on after a drag here. */
function keepFocus(event: Event): void {
  event.preventDefault();
}
