/** The view of a file with a teleport or an agent's run. Needs nothing of the service: the file contains everything. */

import { useRef } from "preact/hooks";

import { Failure, Loading } from "../parts/feedback";
import { replayHref, type Route } from "../route";
import { count, line, number } from "../words";
import type { Replay } from "./file";
import { closeReplay, openReplay, useOpenReplay } from "./open_file";
import { WalkView } from "./walk_view";

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
  const { replay, name } = open;
  return <WalkView replay={replay} query={route.query} href={replayHref} head={<ReplayHead replay={replay} name={name} />} />;
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
