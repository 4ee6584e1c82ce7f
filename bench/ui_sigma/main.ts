// Draws one random graph with sigma.js (WebGL) or on a 2D canvas, and measures frames while the view moves.

import Graph from "graphology";
import Sigma from "sigma";
import { EdgeLineProgram } from "sigma/rendering";

const FRAMES = 40;

let seed = 1;
const random = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
const nextFrame = () => new Promise<number>((done) => requestAnimationFrame(done));

async function measure(draw: (frame: number) => void): Promise<number[]> {
  const gaps: number[] = [];
  let last = performance.now();
  for (let frame = 0; frame < FRAMES; frame++) {
    draw(frame);
    await nextFrame();
    const now = performance.now();
    gaps.push(now - last);
    last = now;
  }
  return gaps;
}

async function withSigma(nodes: number, ends: [number, number][]): Promise<number[]> {
  const graph = new Graph({ multi: true, type: "directed" });
  for (let node = 0; node < nodes; node++) {
    graph.addNode(node, { x: node % 100, y: 1.2 * Math.floor(node / 100), size: 3, color: "#3366cc", label: `Page ${node}` });
  }
  for (const [from, to] of ends) graph.addEdge(from, to, { size: 1, color: "#88888888" });
  const box = document.getElementById("sigma")!;
  box.style.cssText = "width: 1280px; height: 800px";
  const renderer = new Sigma(graph, box, {
    edgeProgramClasses: { line: EdgeLineProgram },
    defaultEdgeType: "line",
    labelRenderedSizeThreshold: 12,
  });
  await nextFrame();
  const camera = renderer.getCamera();
  return measure((frame) => camera.setState({ x: 0.5 + 0.2 * Math.sin(frame / 8), ratio: 1 - 0.5 * Math.sin(frame / 15) }));
}

/** States as rectangles; edges, if any, as lines in batches. */
async function withCanvas(nodes: number, ends: [number, number][]): Promise<number[]> {
  const context = (document.getElementById("canvas") as HTMLCanvasElement).getContext("2d")!;
  return measure((frame) => {
    const zoom = 8 + 4 * Math.sin(frame / 15);
    const left = 200 * Math.sin(frame / 8);
    const x = (node: number) => (node % 100) * zoom + left;
    const y = (node: number) => 1.2 * Math.floor(node / 100) * zoom;
    context.clearRect(0, 0, 1280, 800);
    context.lineWidth = 0.5;
    context.strokeStyle = "#88888888";
    for (let first = 0; first < ends.length; first += 500) {
      context.beginPath();
      for (const [from, to] of ends.slice(first, first + 500)) {
        context.moveTo(x(from), y(from));
        context.lineTo(x(to), y(to));
      }
      context.stroke();
    }
    context.fillStyle = "#3366cc";
    for (let node = 0; node < nodes; node++) context.fillRect(x(node) - 3, y(node) - 3, 6, 6);
  });
}

Object.assign(window, {
  measureRenderer(kind: string, nodes: number, edges: number): Promise<number[]> {
    const ends = Array.from({ length: edges }, (): [number, number] => [
      Math.floor(random() * nodes),
      Math.floor(random() * nodes),
    ]);
    return kind === "sigma" ? withSigma(nodes, ends) : withCanvas(nodes, ends);
  },
});
