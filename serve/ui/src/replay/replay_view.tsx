/** A teleport or an agent's run, step by step. Needs nothing of the service: the file contains everything. */

import { useEffect, useRef } from "preact/hooks";

import { Empty, Failure, Loading } from "../parts/feedback";
import { replace, replayHref, type Route } from "../route";
import { count, line, number } from "../words";
import type { Replay, ReplayStep } from "./file";
import { closeReplay, openReplay, useOpenReplay } from "./open_file";
import { StepDetails } from "./step_details";

export function ReplayView({ route }: { route: Route }) {
  const open = useOpenReplay();
  if (open.status === "loading") return <Loading what={line(open.name, 80)} />;
  if (open.status === "failed") {
    return (
      <main class="page" id="main" tabIndex={-1}>
        <h1 class="hidden">Replay</h1>
        <Failure failure={open.failure}>
          <span class="muted">{line(open.name, 80)}</span>
        </Failure>
        <ChooseFile />
      </main>
    );
  }
  if (open.status === "none") {
    return (
      <main class="page" id="main" tabIndex={-1}>
        <h1 class="hidden">Replay</h1>
        <ChooseFile />
      </main>
    );
  }
  return <Opened replay={open.replay} name={open.name} at={Number(route.query.get("step") ?? 1) - 1} />;
}

function ChooseFile() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div class="drop-field">
      <p class="note-title">Drop a trace here</p>
      <p class="muted">
        It shows a teleport or an agent's run step by step: what was expected, what happened, and why. The file stays in
        this tab; nothing is sent.
      </p>
      <p>
        <button type="button" class="primary" onClick={() => input.current!.click()}>
          Choose a file
        </button>
        <input
          ref={input}
          type="file"
          class="hidden"
          tabIndex={-1}
          aria-label="Trace file"
          accept=".json,application/json"
          onChange={(event) => {
            const file = event.currentTarget.files?.[0];
            if (file) void openReplay(file);
          }}
        />
      </p>
      <pre tabIndex={0} aria-label="Commands that write traces">
        {"waygraph teleport SITE TARGET --trace walk.json\nwaygraph tasks trace RUN TASK -o task.json"}
      </pre>
    </div>
  );
}

function Opened({ replay, name, at }: { replay: Replay; name: string; at: number }) {
  const { steps } = replay;
  const index = Math.min(Math.max(0, Number.isInteger(at) ? at : 0), Math.max(0, steps.length - 1));
  const list = useRef<HTMLOListElement>(null);
  const show = (next: number) => replace(replayHref(Math.min(Math.max(0, next), steps.length - 1) + 1));
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if ((event.target as HTMLElement).matches("input, select, textarea, pre")) return;
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (by === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      show(index + by);
      event.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [index, steps.length]);
  useEffect(() => {
    list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [index]);
  const step = steps[index];
  return (
    <main class="replay" id="main" tabIndex={-1}>
      <section class="panel" aria-label="Steps">
        <ReplayHead replay={replay} name={name} />
        <ol class="steps replay-steps" ref={list}>
          {steps.map((each, number) => (
            <li key={number} class={`step-${markOf(each).kind}`}>
              <button
                type="button"
                class="row"
                aria-current={number === index ? "step" : undefined}
                onClick={() => show(number)}
              >
                <span dir="auto">{line(each.action, 160) || "No action"}</span>
                <span class="muted">{markOf(each).text}</span>
              </button>
            </li>
          ))}
        </ol>
      </section>
      {step ? (
        <StepDetails step={step} number={index + 1} of={steps.length} onShow={(next) => show(next - 1)} />
      ) : (
        <Empty title="No step was taken">
          <p>The walk was there already, or ended before its first step.</p>
        </Empty>
      )}
    </main>
  );
}

function ReplayHead({ replay, name }: { replay: Replay; name: string }) {
  const { outcome } = replay;
  const usage = replay.steps.flatMap((step) => step.usage ?? []);
  const tokens = usage.reduce((sum, each) => sum + each.inputTokens + each.outputTokens, 0);
  const cost = usage.reduce((sum, each) => sum + (each.cost ?? 0), 0);
  const kind = outcome?.good === true ? "good" : outcome?.good === false ? "bad" : "plain";
  return (
    <div class="facts">
      <p class="muted">
        {replay.kind === "agent" ? "Run of an agent" : "Teleport"}
        {replay.site && ` on ${line(replay.site, 80)}`}
      </p>
      <h1 class="replay-title" dir="auto">
        {line(replay.title, 400)}
      </h1>
      <p class={`outcome outcome-${kind}`}>
        {outcome ? line(outcome.status.replaceAll("_", " "), 60) : "The trace ends without an outcome"}
        {outcome?.message && <span>: {line(outcome.message, 400)}</span>}
      </p>
      {outcome?.answer && (
        <p class="answer" dir="auto">
          {line(outcome.answer, 2000)}
        </p>
      )}
      <p class="muted">
        {[
          count(replay.steps.length, "step"),
          tokens ? count(tokens, "token") : "",
          cost ? `$${cost.toFixed(cost < 0.1 ? 4 : 2)}` : "",
          ...replay.facts.map(([label, value]) => `${line(label, 40)} ${line(value, 120)}`),
        ]
          .filter(Boolean)
          .join(" · ")}
      </p>
      {replay.imagesLeftOut > 0 && (
        <p class="notice">{number(replay.imagesLeftOut)} screenshots are not in the file.</p>
      )}
      <p class="muted replay-file">
        {line(name, 80)}{" "}
        <button type="button" class="quiet" onClick={closeReplay}>
          Close
        </button>
      </p>
    </div>
  );
}

const GOOD = new Set(["done", "ok", "arrived"]);

export function markOf(step: ReplayStep): { kind: "good" | "bad" | "plain"; text: string } {
  const status = line(step.status.replaceAll("_", " "), 40);
  if (step.agrees === false) return { kind: "bad", text: status || "not as expected" };
  if (step.agrees === true) return { kind: "good", text: "as expected" };
  return { kind: GOOD.has(step.status) ? "plain" : "bad", text: status };
}
