/** The report of a run of agents: success by group, the tasks, and the trace of each as the page replays it. */

import { useMemo, useState } from "preact/hooks";

import { Empty } from "../parts/feedback";
import { Table } from "../parts/table";
import { type Replay, replayOf } from "../replay/file";
import { WalkView } from "../replay/walk_view";
import { useHash } from "../route";
import { count, dateTime, duration, isWebUrl, line, number } from "../words";
import type { AgentsContent, AgentTask, GroupFigures } from "./document";
import { More, Numbers, Section } from "./parts";

interface Props {
  content: AgentsContent;
  /** Data URLs by key. */
  images: ReadonlyMap<string, string>;
}

/** Rows of tasks that are shown at first. */
const MAX_ROWS = 200;
type Verdict = "success" | "failure" | "undecided";

export function AgentsReport({ content, images }: Props) {
  const { at, query } = parse(useHash(), content);
  if (at === null) return <Run content={content} images={images} />;
  return <Task key={at} content={content} images={images} at={at} query={query} />;
}

/** Addresses within the report: `#/` and `#/tasks/ID?step=N&show=PART&state=N`. */
function taskHref(id: string, query = new URLSearchParams()): string {
  return `#/tasks/${encodeURIComponent(id)}${query.size ? `?${query}` : ""}`;
}

/** Which task is shown; null: none. */
function parse(hash: string, { tasks }: AgentsContent): { at: number | null; query: URLSearchParams } {
  const [path = "", search = ""] = hash.replace(/^#/, "").split("?", 2);
  const at = tasks.findIndex(({ id }) => path === taskHref(id).slice(1));
  return { at: at < 0 ? null : at, query: new URLSearchParams(search) };
}

function verdictOf({ success }: AgentTask): Verdict {
  return success === null ? "undecided" : success ? "success" : "failure";
}

const KINDS = { success: "good", failure: "bad", undecided: "partial" } as const;

function VerdictText({ task, children }: { task: AgentTask; children?: string }) {
  const verdict = verdictOf(task);
  return <span class={`verdict outcome-${KINDS[verdict]}`}>{children ?? verdict}</span>;
}

/** A rate of success; a range if tasks have no reward. */
export function rateOf({ successes, undecided, tasks }: { successes: number; undecided: number; tasks: number }): string {
  const percent = (part: number) => `${Math.round((100 * part) / tasks)}%`;
  return undecided ? `${percent(successes)} to ${percent(successes + undecided)}` : percent(successes);
}

function interval([low, high]: [number, number]): string {
  return `${(100 * low).toFixed(1)}% to ${(100 * high).toFixed(1)}%`;
}

/** A price, in the currency of the configured ones. */
function money(cost: number): string {
  return Number(cost.toPrecision(4)).toLocaleString("en", { maximumFractionDigits: 6 });
}

function Run({ content, images }: Props) {
  const { all, needs, task_file: file, left_out: left } = content;
  const labels = Object.entries(content.labels).filter(([, value]) => value).map(([name, value]) => `${line(name, 40)} ${line(value, 120)}`);
  const scorers = Object.entries(content.scorers).map(([name, tasks]) => `${line(name, 80)} (${number(tasks)})`);
  const lacking = Object.entries(needs).map(([need, tasks]) => `${line(need, 60)} (${number(tasks)})`);
  const notes = [
    [left.traces, "trace", "traces"],
    [left.images, "screenshot", "screenshots"],
    [left.texts, "text that an agent read", "texts that agents read"],
  ].flatMap(([value, one, many]) => (value ? [count(value as number, one as string, many as string)] : []));
  return (
    <main class="page report" id="main" tabIndex={-1}>
      <div class="report-head">
        <h1>Run {line(content.name, 120)}</h1>
        <p class="muted">
          {[...labels, `begun ${dateTime(content.created)}`, `scored by ${scorers.join(", ")}`].join(" · ")}
        </p>
        <p class="muted">
          Tasks of {line(file.name, 120)}, sha256 <code>{line(file.sha256, 64)}</code>
        </p>
      </div>
      <Numbers
        items={[
          [`${number(all.successes)} of ${number(all.tasks)}`, "tasks succeeded"],
          [rateOf(all), "rate of success"],
          [content.interval ? interval(content.interval) : "", "95% interval"],
          [all.steps, "step", "steps"],
          [all.seconds === null ? "" : duration(all.seconds), "time of all tasks"],
          [all.input_tokens, "input token", "input tokens"],
          [all.output_tokens, "output token", "output tokens"],
          [all.cost === null ? "" : money(all.cost), "cost"],
        ]}
      />
      <div class="report-notes">
        {lacking.length > 0 && (
          <p class="muted">
            Without a reward: {count(all.undecided, "task")}, lacking {lacking.join(", ")}. They may still be successes, so rates are
            ranges.
          </p>
        )}
        {all.done < all.tasks && (
          <p class="muted">Without a result, and in none of the groups: {count(all.tasks - all.done, "task")}.</p>
        )}
        {notes.length > 0 && (
          <p class="notice">
            Not in this file, which is limited in size: {notes.join(", ")}. The folder of the run has them, and{" "}
            <code>waygraph tasks trace</code> makes a file of one task.
          </p>
        )}
      </div>
      {Object.entries(content.groups).map(([kind, groups]) => (
        <Groups key={kind} kind={line(kind, 40).replaceAll("_", " ")} groups={groups} />
      ))}
      <Tasks content={content} images={images} />
    </main>
  );
}

function Groups({ kind, groups }: { kind: string; groups: readonly GroupFigures[] }) {
  const mean = (value: number | null) => value?.toFixed(1) ?? "";
  const whole = (value: number | null) => (value === null ? "" : number(Math.round(value)));
  const withModel = groups.some((each) => each.input_tokens);
  const title = `By ${kind}`;
  return (
    <Section title={title} note={withModel ? "Steps, seconds and tokens are means per task, cost is a sum." : "Steps and seconds are means per task."}>
      <Table
        label={title}
        rows={groups}
        columns={[
          { title: kind[0]!.toUpperCase() + kind.slice(1), cell: (each) => line(each.name, 120) },
          { title: "Tasks", isNumber: true, cell: (each) => number(each.tasks) },
          { title: "Succeeded", isNumber: true, cell: (each) => number(each.successes) },
          { title: "Rate", isNumber: true, cell: rateOf },
          { title: "", cell: (each) => <Shares group={each} /> },
          { title: "No reward", isNumber: true, cell: (each) => number(each.undecided) },
          { title: "Steps", isNumber: true, cell: (each) => mean(each.mean_steps) },
          { title: "Seconds", isNumber: true, cell: (each) => mean(each.mean_seconds) },
          // Agents without a model have neither, and models without configured prices have no cost.
          ...(withModel
            ? [
                { title: "Input tokens", isNumber: true, cell: (each: GroupFigures) => whole(each.mean_input_tokens) },
                { title: "Output tokens", isNumber: true, cell: (each: GroupFigures) => whole(each.mean_output_tokens) },
              ]
            : []),
          ...(groups.some((each) => each.cost !== null)
            ? [{ title: "Cost", isNumber: true, cell: (each: GroupFigures) => (each.cost === null ? "" : money(each.cost)) }]
            : []),
        ]}
      />
    </Section>
  );
}

function Shares({ group: { successes, undecided, tasks } }: { group: GroupFigures }) {
  const shares: [string, number][] = [["done", successes], ["pending", undecided], ["failed", tasks - successes - undecided]];
  return (
    <div class="share share-small" aria-hidden="true">
      {shares.map(([kind, value]) => value > 0 && <span key={kind} class={`share-${kind}`} style={{ flexGrow: value }} />)}
    </div>
  );
}

function Tasks({ content, images }: Props) {
  const [only, setOnly] = useState<Verdict | "">("");
  const [all, setAll] = useState(false);
  const { tasks } = content;
  const kept = tasks.filter((task) => !only || verdictOf(task) === only);
  const shown = all ? kept : kept.slice(0, MAX_ROWS);
  const verdicts = (["success", "failure", "undecided"] as const).map((each) => [each, tasks.filter((task) => verdictOf(task) === each).length] as const);
  return (
    <Section title="Tasks">
      <div class="segmented" role="group" aria-label="Which tasks">
        <button type="button" aria-pressed={only === ""} onClick={() => setOnly("")}>
          all {number(tasks.length)}
        </button>
        {verdicts.map(
          ([verdict, found]) =>
            found > 0 && (
              <button key={verdict} type="button" aria-pressed={only === verdict} onClick={() => setOnly(verdict)}>
                {verdict} {number(found)}
              </button>
            ),
        )}
      </div>
      <Table
        label="Tasks"
        rows={shown}
        columns={[
          { title: "", cell: (task) => <LastWindow task={task} images={images} /> },
          {
            title: "Task",
            cell: (task) => (
              <>
                <a href={taskHref(task.id)}>{line(task.id, 80)}</a>
                <div class="muted task-part">{line(task.result?.site ?? "", 60)}</div>
              </>
            ),
          },
          {
            title: "Result",
            cell: (task) => (
              <>
                <VerdictText task={task} />
                <div class="muted task-part">
                  {task.result ? line(task.result.ended.replaceAll("_", " "), 40) : "no result"}
                  {task.reward !== null && task.reward > 0 && task.reward < 1 && `, reward ${task.reward.toPrecision(3)}`}
                </div>
              </>
            ),
          },
          { title: "Intent", cell: (task) => line(task.result?.intent ?? "", 160) },
          { title: "Answer", cell: (task) => line(task.result?.answer || task.problem, 160) },
          { title: "Steps", isNumber: true, cell: (task) => (task.result ? number(task.result.steps) : "") },
          { title: "Seconds", isNumber: true, cell: (task) => task.result?.seconds?.toFixed(1) ?? "" },
        ]}
      />
      {shown.length < kept.length && (
        <button type="button" class="quiet" onClick={() => setAll(true)}>
          Show all {number(kept.length)}
        </button>
      )}
      <More left={content.left_out.tasks} where="waygraph score --json" />
    </Section>
  );
}

/** The window at the end of a task, small. */
function LastWindow({ task, images }: { task: AgentTask; images: Props["images"] }) {
  const steps = task.replay?.["steps"] as { before?: { screenshot?: string }; after?: { screenshot?: string } }[] | undefined;
  const last = steps?.at(-1);
  const url = images.get(last?.after?.screenshot ?? last?.before?.screenshot ?? "");
  return <span class="task-window">{url && <img src={url} alt="" loading="lazy" />}</span>;
}

const NOTHING: Replay = { kind: "agent", created: "", title: "", site: "", facts: [], outcome: null, steps: [], tree: null, imagesLeftOut: 0 };

function Task({ content, images, at, query }: Props & { at: number; query: URLSearchParams }) {
  const task = content.tasks[at]!;
  const replay = useMemo(
    () =>
      task.replay === null
        ? NOTHING
        : replayOf(task.replay, {
            image: (key) => images.get(key) ?? "",
            text: (key) => (Object.hasOwn(content.texts, key) ? content.texts[key]! : ""),
          }),
    [task],
  );
  return (
    <WalkView
      replay={replay}
      query={query}
      href={(next) => taskHref(task.id, next)}
      head={<TaskHead content={content} at={at} />}
      more={{ name: "Checks", content: <Checks task={task} /> }}
    />
  );
}

function TaskHead({ content, at }: { content: AgentsContent; at: number }) {
  const task = content.tasks[at]!;
  const { result } = task;
  const [before, after] = [content.tasks[at - 1], content.tasks[at + 1]];
  const facts = result && [
    count(result.steps, "step"),
    result.seconds === null ? "" : duration(result.seconds),
    result.tokens ? count(result.tokens, "token") : "",
    result.calls ? count(result.calls, "model call") : "",
    result.cost === null ? "" : `cost ${money(result.cost)}`,
  ];
  return (
    <div class="facts">
      <nav class="task-nav" aria-label="Tasks">
        <a href="#/">All tasks</a>
        {before && <a href={taskHref(before.id)}>← {line(before.id, 40)}</a>}
        {after && <a href={taskHref(after.id)}>{line(after.id, 40)} →</a>}
      </nav>
      <p class="muted">Task {line(task.id, 80)}{result && ` on ${line(result.site, 80)}`}</p>
      <h1 class="replay-title" dir="auto">
        {line(result?.intent ?? "", 400) || `Task ${line(task.id, 80)}`}
      </h1>
      <p>
        <VerdictText task={task}>{result ? verdictOf(task) : "no result"}</VerdictText>
        <span class="muted">
          {task.reward !== null && `, reward ${Number(task.reward.toPrecision(3))}`}
          {result && `; ${line(result.ended.replaceAll("_", " "), 40)}`}
        </span>
      </p>
      {task.problem && <p class="notice notice-bad">{line(task.problem, 600)}</p>}
      {result?.answer && (
        <p class="answer" dir="auto">
          {line(result.answer, 2000)}
        </p>
      )}
      {facts && <p class="muted">{facts.filter(Boolean).join(" · ")}</p>}
      {result && (
        <p class="url muted">
          {result.url ? "Ended at " : "Started at "}
          <Address url={result.url || result.start_urls.join(", ")} />
        </p>
      )}
      {task.replay === null && <p class="notice">Its trace is not in this file.</p>}
    </div>
  );
}

function Address({ url }: { url: string }) {
  if (!isWebUrl(url)) return <>{line(url)}</>;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {line(url)}
    </a>
  );
}

function Checks({ task }: { task: AgentTask }) {
  if (!task.checks.length) return <Empty title="No check was made" />;
  return (
    <Table
      label="Checks"
      rows={task.checks}
      columns={[
        { title: "Subject", cell: (each) => line(each.subject, 80) },
        { title: "Rule", cell: (each) => line(each.rule, 80) },
        { title: "Score", isNumber: true, cell: (each) => (each.score === null ? "" : Number(each.score.toPrecision(3))) },
        { title: "Expected", cell: (each) => line(each.expected, 500) },
        { title: "Found", cell: (each) => line(each.found, 500) },
        { title: "Note", cell: (each) => line(each.note, 500) },
      ]}
    />
  );
}
