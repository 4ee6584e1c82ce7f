/** The canvas of a map with pointer and keyboard. */

import { useEffect, useRef, useState } from "preact/hooks";

import { count, line, shortUrl } from "../words";
import { titleOf } from "./model";
import { MiniMap } from "./mini_map";
import { MapRenderer, type Scene } from "./renderer";

interface Props {
  site: string;
  scene: Scene;
  onSelect: (state: number) => void;
  /** A collapsed group was chosen. */
  onExpand: (group: number) => void;
  /** States that are fitted into the view whenever the list changes; empty: none. */
  fitTo: readonly number[];
  /** The page around the map scrolls: the wheel zooms only once the map has the focus. */
  scrollsPage?: boolean;
}

type Direction = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

export function MapCanvas({ site, scene, onSelect, onExpand, fitTo, scrollsPage = false }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const small = useRef<HTMLCanvasElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const renderer = useRef<MapRenderer | null>(null);
  const current = useRef({ scene, onSelect, onExpand });
  current.current = { scene, onSelect, onExpand };
  const [tip, setTip] = useState<{ place: number; x: number; y: number } | null>(null);
  const layout = scene.layout;

  useEffect(() => {
    const made = new MapRenderer(canvas.current!, site);
    renderer.current = made;
    const mini = new MiniMap(small.current!, made);
    made.setScene(current.current.scene);
    made.readColours();
    const observer = new ResizeObserver(([entry]) => {
      made.resize(entry!.contentRect.width, entry!.contentRect.height);
      if (current.current.scene.selected >= 0) made.reveal(current.current.scene.selected);
    });
    observer.observe(frame.current!);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const follow = () => made.readColours();
    dark.addEventListener("change", follow);
    const stopPointer = followPointer(canvas.current!, made, current, setTip, scrollsPage);
    return () => {
      stopPointer();
      mini.destroy();
      dark.removeEventListener("change", follow);
      observer.disconnect();
      made.destroy();
    };
  }, [site]);

  useEffect(() => renderer.current?.setScene(scene), [scene]);
  const firstLayout = useRef(layout);
  useEffect(() => {
    if (layout !== firstLayout.current) renderer.current?.fit();
  }, [layout]);
  useEffect(() => {
    if (scene.selected >= 0 && !fitTo.length) renderer.current?.reveal(scene.selected);
  }, [scene.selected]);
  useEffect(() => {
    if (fitTo.length) renderer.current?.fit(fitTo);
  }, [fitTo]);

  const onKeyDown = (event: KeyboardEvent) => {
    const made = renderer.current!;
    const steps: Record<Direction, [number, number]> = {
      ArrowLeft: [1, 0],
      ArrowRight: [-1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
    };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) {
      const direction = event.key as Direction;
      const [dx, dy] = steps[direction];
      if (event.shiftKey) made.pan(dx * 80, dy * 80);
      else onSelect(nextState(scene, direction));
    } else if (event.key === "+" || event.key === "=") made.zoom(1.3);
    else if (event.key === "-") made.zoom(1 / 1.3);
    else if (event.key === "0") made.fit();
    else if (event.key === "Enter" && scene.selected >= 0) expandAt(current.current, layout.placeOf[scene.selected]!);
    else if (event.key === "Escape") onSelect(-1);
    else return;
    event.preventDefault();
  };

  const answer = scene.model.answer;
  const tipState = tip === null ? -1 : (layout.places[tip.place] ?? -1);
  return (
    <div class="map-frame" ref={frame}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-roledescription="map"
        aria-label={`Map of ${answer.site}: ${count(scene.model.states, "state")}. Arrow keys select the next state, plus and minus zoom, 0 shows everything.`}
        onKeyDown={onKeyDown}
      />
      {/* The arrow keys with Shift move the map too. */}
      <canvas class="mini-map" ref={small} aria-hidden="true" title="Drag to move the map" />
      <div class="map-buttons" role="group" aria-label="View">
        <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => renderer.current?.zoom(1.4)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" title="Zoom out (-)" onClick={() => renderer.current?.zoom(1 / 1.4)}>
          −
        </button>
        <button type="button" aria-label="Show everything" title="Show everything (0)" onClick={() => renderer.current?.fit()}>
          ⤢
        </button>
      </div>
      {tip !== null && tipState >= 0 && (
        <div class="map-tip" style={{ left: `${tip.x}px`, top: `${tip.y}px` }}>
          {layout.counts[tip.place]! > 1 ? (
            <>
              <strong>{count(layout.counts[tip.place]!, "alike page")}</strong>
              <span>{line(answer.groups[answer.states.group[tipState]!]!)}</span>
            </>
          ) : (
            <>
              <strong dir="auto">{line(titleOf(scene.model, tipState), 90)}</strong>
              <span>{shortUrl(answer.states.url[tipState]!, answer.site).slice(0, 90)}</span>
            </>
          )}
        </div>
      )}
    </div>
  );
}

type Current = { readonly current: { scene: Scene; onSelect: (state: number) => void; onExpand: (group: number) => void } };

function expandAt({ scene, onSelect, onExpand }: Current["current"], place: number): void {
  const state = scene.layout.places[place];
  if (state === undefined) return;
  if (scene.layout.counts[place]! > 1) onExpand(scene.model.answer.states.group[state]!);
  else onSelect(state);
}

/** Drag pans, the wheel and two fingers zoom, a click selects, hovering shows a tip. Returns what ends that. */
function followPointer(
  canvas: HTMLCanvasElement,
  renderer: MapRenderer,
  current: Current,
  setTip: (tip: { place: number; x: number; y: number } | null) => void,
  scrollsPage: boolean,
): () => void {
  const pointers = new Map<number, { x: number; y: number }>();
  let moved = 0;
  let hovered = -1;
  const hover = (place: number) => {
    if (place === hovered) return;
    hovered = place;
    renderer.setHovered(place);
    canvas.style.cursor = place >= 0 ? "pointer" : "grab";
    setTip(place >= 0 ? { place, ...renderer.screenPosition(place) } : null);
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (pointers.size === 1) moved = 0;
  };
  const move = (event: PointerEvent) => {
    const before = pointers.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType === "mouse") hover(renderer.placeAt(event.clientX, event.clientY));
      return;
    }
    const now = { x: event.clientX, y: event.clientY };
    moved += Math.hypot(now.x - before.x, now.y - before.y);
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const factor = Math.hypot(now.x - other.x, now.y - other.y) / Math.max(1, Math.hypot(before.x - other.x, before.y - other.y));
      renderer.zoom(factor, (now.x + other.x) / 2, (now.y + other.y) / 2);
    } else if (moved > 3) {
      hover(-1);
      renderer.pan(now.x - before.x, now.y - before.y);
    }
    pointers.set(event.pointerId, now);
  };
  const up = (event: PointerEvent) => {
    const was = pointers.delete(event.pointerId);
    if (!was || moved > 3 || event.type === "pointercancel") return;
    const place = renderer.placeAt(event.clientX, event.clientY);
    if (place < 0) current.current.onSelect(-1);
    else expandAt(current.current, place);
  };
  const wheel = (event: WheelEvent) => {
    if (scrollsPage && document.activeElement !== canvas) return;
    event.preventDefault();
    hover(-1);
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    renderer.zoom(Math.exp(-event.deltaY * lines * 0.0015), event.clientX, event.clientY);
  };
  const leave = () => hover(-1);
  const handlers: [string, (event: never) => void][] = [
    ["pointerdown", down],
    ["pointermove", move],
    ["pointerup", up],
    ["pointercancel", up],
    ["pointerleave", leave],
    ["wheel", wheel],
  ];
  for (const [name, handler] of handlers) canvas.addEventListener(name, handler as EventListener, { passive: false });
  return () => {
    for (const [name, handler] of handlers) canvas.removeEventListener(name, handler as EventListener);
  };
}

/** The state that is nearest in a direction from the selected one; the start if none is selected. */
function nextState(scene: Scene, direction: Direction): number {
  const { layout, model } = scene;
  const from = scene.selected >= 0 ? layout.placeOf[scene.selected]! : -1;
  if (from < 0) return layout.placeOf[model.answer.start]! >= 0 ? model.answer.start : (layout.places[0] ?? -1);
  const horizontal = direction === "ArrowLeft" || direction === "ArrowRight";
  const sign = direction === "ArrowRight" || direction === "ArrowDown" ? 1 : -1;
  let best = from;
  let least = Infinity;
  for (let place = 0; place < layout.places.length; place++) {
    const dx = layout.x[place]! - layout.x[from]!;
    const dy = layout.y[place]! - layout.y[from]!;
    const along = (horizontal ? dx : dy) * sign;
    const across = Math.abs(horizontal ? dy : dx);
    if (along <= 1) continue;
    const distance = along + 3 * across;
    if (distance < least) [best, least] = [place, distance];
  }
  return layout.places[best]!;
}
