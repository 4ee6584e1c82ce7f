/** A teleport or an agent's run that was read: its steps on the left, and one of them, or the tree of a search, beside. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { Empty } from "../parts/feedback";
import { replace } from "../route";
import { line } from "../words";
import type { Replay, ReplayStep } from "./file";
import { StepDetails } from "./step_details";
import { TreeView } from "./tree_view";

/** What is shown beside the steps. */
type Part = "step" | "tree" | "more";

interface Props {
  replay: Replay;
  /** Query of the address: `step`, `show`, `state`. */
  query: URLSearchParams;
  /** Address of the view with another query. */
  href: (query: URLSearchParams) => string;
  head: ComponentChildren;
  /** A further part beside the steps, with its name. */
  more?: { name: string; content: ComponentChildren };
}

export function WalkView({ replay, query, href, head, more }: Props) {
  const { steps, tree } = replay;
  const asked = Number(query.get("step") ?? 1) - 1;
  const index = Math.min(Math.max(0, Number.isInteger(asked) ? asked : 0), Math.max(0, steps.length - 1));
  const parts: [Part, string][] = [["step", "Step"]];
  if (tree) parts.push(["tree", "Search tree"]);
  if (more) parts.push(["more", more.name]);
  const part = parts.find(([each]) => each === query.get("show"))?.[0] ?? "step";
  const list = useRef<HTMLOListElement>(null);
  const set = (changes: Record<string, string>) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes)) value ? next.set(name, value) : next.delete(name);
    replace(href(next));
  };
  const show = (next: number) => {
    const at = Math.min(Math.max(0, next), steps.length - 1);
    set({ step: at > 0 ? String(at + 1) : "", show: "", state: "" });
  };
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if ((event.target as HTMLElement).matches("input, select, textarea, pre, .table")) return;
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (by === undefined || event.ctrlKey || event.metaKey || event.altKey || part !== "step") return;
      show(index + by);
      event.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  });
  useEffect(() => {
    list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [index]);
  const step = steps[index];
  return (
    <main class="replay" id="main" tabIndex={-1}>
      <section class="panel" aria-label="Steps">
        {head}
        <ol class="steps replay-steps" ref={list}>
          {steps.map((each, number) => (
            <li key={number} class={`step-${markOf(each).kind}`}>
              <button
                type="button"
                class="row"
                aria-current={part === "step" && number === index ? "step" : undefined}
                onClick={() => show(number)}
              >
                <span dir="auto">{line(each.action, 160) || "No action"}</span>
                <span class="muted">{markOf(each).text}</span>
              </button>
            </li>
          ))}
        </ol>
      </section>
      <div class="replay-part">
        {parts.length > 1 && (
          <div class="tabs" role="group" aria-label="What is shown">
            {parts.map(([each, name]) => (
              <button key={each} type="button" aria-pressed={each === part} onClick={() => set({ show: each === "step" ? "" : each })}>
                {name}
              </button>
            ))}
          </div>
        )}
        {part === "step" &&
          (step ? (
            <StepDetails step={step} number={index + 1} of={steps.length} onShow={(next) => show(next - 1)} />
          ) : (
            <Empty title="No step was taken">
              <p>It was there already, or ended before its first step.</p>
            </Empty>
          ))}
        {part === "tree" && (
          <section class="panel step-details" aria-label="Search tree">
            <TreeView
              tree={tree!}
              selected={stateOf(query.get("state"), tree!.nodes.length)}
              onSelect={(state) => set({ state: state < 0 ? "" : String(state) })}
            />
          </section>
        )}
        {part === "more" && (
          <section class="panel step-details" aria-label={more!.name}>
            {more!.content}
          </section>
        )}
      </div>
    </main>
  );
}

function stateOf(text: string | null, states: number): number {
  const state = text === null || text === "" ? -1 : Number(text);
  return Number.isInteger(state) && state < states ? state : -1;
}

const GOOD = new Set(["done", "kept", "ok", "arrived"]);

function markOf(step: ReplayStep): { kind: "good" | "bad" | "plain"; text: string } {
  const status = line(step.status.replaceAll("_", " "), 40);
  if (step.agrees === false) return { kind: "bad", text: status || "not as expected" };
  if (step.agrees === true) return { kind: "good", text: "as expected" };
  return { kind: GOOD.has(step.status) ? "plain" : "bad", text: status };
}
