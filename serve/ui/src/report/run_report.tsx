/** The report of a run: totals, plots, why sites failed, start pages and tables, for any number of sites. */

import { Table } from "../parts/table";
import { count, dateTime, duration, line, number } from "../words";
import { Bars, Columns, DiscoveryCurves, formatNumber, Histogram, VelocityBoxes } from "./charts";
import type { Quartiles, RunContent, RunReason } from "./document";
import { More, Numbers, Section, Sheet } from "./parts";

const STATUS: Record<string, string> = {
  published: "published",
  unchanged: "unchanged",
  failed: "failed",
  interrupted: "left unfinished",
};
const STOPPED: Record<string, string> = {
  signal: "It was interrupted.",
  error: "An error ended it.",
  max_total_states: "The budget of states is spent.",
  max_total_seconds: "The budget of time is spent.",
};
const MAX_REASONS = 15;

export function RunReport({ content }: { content: RunContent }) {
  const { findings } = content;
  const { totals } = findings;
  const mapped = totals.published + totals.unchanged;
  const isOfOneSite = findings.depths.every((depth) => depth.velocity.count <= 1);
  return (
    <main class="page report" id="main" tabIndex={-1}>
      <div class="report-head">
        <h1>Run {content.run_id}</h1>
        <p class="muted">
          {line(content.work, 80)} into {line(content.store, 160)}, begun {dateTime(content.started)}
          {content.finished && `, ended ${dateTime(content.finished)}`}: {duration(content.seconds)} of work
          {content.calls_total > 1 && `, in ${number(content.calls_total)} invocations`}.{" "}
          {STOPPED[content.stopped_by] ?? ""}
          {content.unfinished > 0 && ` The same command continues with ${count(content.unfinished, "site")}.`}
        </p>
      </div>
      <Numbers
        items={[
          [totals.sites, "site", "sites"],
          [totals.published, STATUS.published!],
          [totals.unchanged, STATUS.unchanged!],
          [totals.failed, STATUS.failed!],
          [totals.interrupted, STATUS.interrupted!],
          [totals.states, "state", "states"],
          [totals.edges, "action", "actions"],
          [findings.retried, "site retried", "sites retried"],
          [findings.without_vectors, "state without vectors", "states without vectors"],
        ]}
      />
      {findings.depths.length > 0 && (
        <Section
          title="Discovery velocity by depth"
          note={
            isOfOneSite
              ? ""
              : "New states per minute. A box holds the middle half of the sites, its bar is the median, the line goes from the slowest to the fastest site."
          }
        >
          {isOfOneSite ? (
            <Columns
              label="New states per minute by depth"
              unit="new states per minute of exploring"
              columns={findings.depths.map(({ depth, states, activations, velocity }) => ({
                label: `depth ${depth}`,
                value: velocity.median,
                note: `${number(states)} new, ${count(activations, "action")}`,
              }))}
            />
          ) : (
            <VelocityBoxes depths={findings.depths} />
          )}
        </Section>
      )}
      <Promising content={content} />
      {findings.states_per_site && (
        <Section title="States per site" note={spread(findings.states_per_site, "states")}>
          {mapped > content.sizes.length && <Histogram bins={findings.states_histogram} unit="states" />}
          {mapped > content.sizes.length && <h3>Largest sites</h3>}
          <Bars label="States per site" rows={content.sizes.map(([label, value]) => ({ label, value }))} />
        </Section>
      )}
      <Reasons title="Why sites failed" reasons={findings.errors} kind="bad" />
      <Reasons title="Maps that a limit made partial" reasons={findings.stopped} kind="pale" />
      <Reasons title="Elements that failed" reasons={findings.failed} kind="bad" />
      <Reasons title="Elements and URLs that were skipped" reasons={findings.skipped} kind="pale" />
      <Times content={content} />
      {content.sheet.length > 0 && (
        <Section
          title="Start pages"
          note={mapped > content.sheet.length ? `${number(content.sheet.length)} of ${number(mapped)}, evenly from the list.` : ""}
        >
          <Sheet
            pictures={content.sheet.map(({ site, states, image, problem }) => ({
              image,
              caption: site,
              note: count(states, "state"),
              missing: problem,
            }))}
          />
        </Section>
      )}
      <Tables content={content} />
    </main>
  );
}

function Promising({ content }: { content: RunContent }) {
  const { promising } = content.findings;
  if (!promising.length) return null;
  return (
    <Section
      title="Where a larger budget would find most"
      note="Sites that a limit stopped. The expected number of pages of new kinds is predicted from the results of elements of the same kinds."
    >
      <Table
        label="Sites that a limit stopped"
        rows={promising}
        columns={[
          { title: "Site", cell: (each) => line(each.site, 120) },
          { title: "States", isNumber: true, cell: (each) => number(each.states) },
          { title: "Stopped by", cell: (each) => line(each.stopped_by.replaceAll("_", " "), 60) },
          { title: "Expected from 50 more actions", isNumber: true, cell: (each) => formatNumber(each.expected_gain) },
        ]}
      />
      <DiscoveryCurves sites={promising} />
    </Section>
  );
}

function Reasons({ title, reasons, kind }: { title: string; reasons: readonly RunReason[]; kind: "bad" | "pale" }) {
  if (!reasons.length) return null;
  const rows = reasons.slice(0, MAX_REASONS).map(({ reason, count: value, sites, example }) => ({
    label: reason,
    value,
    note: [count(sites, "site"), example && `for example: ${line(example, 200)}`].filter(Boolean).join("\n"),
  }));
  return (
    <Section title={title}>
      <Bars rows={rows} kind={kind} label={title} />
      <More left={reasons.length - rows.length} where="report.json" />
    </Section>
  );
}

function Times({ content }: { content: RunContent }) {
  const { seconds_per_site: perSite, seconds_histogram: bins } = content.findings;
  const phases = Object.entries(content.phases);
  return (
    <Section title="Times" note={perSite ? spread(perSite, "seconds from the begin of a site until its outcome") : ""}>
      {perSite && perSite.count > 1 && <Histogram bins={bins} unit="seconds" />}
      <Table
        label="Phases"
        rows={phases}
        columns={[
          { title: "Phase of the last invocation", cell: ([name]) => name.replaceAll("_", " ") },
          { title: "Seconds", isNumber: true, cell: ([, seconds]) => seconds.toFixed(1) },
        ]}
      />
      {content.calls_total > 1 && (
        <Table
          label="Invocations"
          rows={content.calls}
          columns={[
            { title: "Invocation", isNumber: true, cell: (each) => number(each.number) },
            { title: "Begun", cell: (each) => dateTime(each.started) },
            { title: "Seconds", isNumber: true, cell: (each) => each.seconds.toFixed(1) },
          ]}
        />
      )}
    </Section>
  );
}

function Tables({ content }: { content: RunContent }) {
  const { failed, others } = content;
  const { totals } = content.findings;
  return (
    <>
      {failed.length > 0 && (
        <Section title="Sites that failed">
          <Table
            label="Sites that failed"
            rows={failed}
            columns={[
              { title: "Site", cell: (each) => line(each.site, 120) },
              { title: "Error", cell: (each) => line(each.title, 80) },
              { title: "Attempts", isNumber: true, cell: (each) => number(each.attempts) },
              { title: "Message", cell: (each) => line(each.message, 600) },
            ]}
          />
          <More left={totals.failed - failed.length} where="report.json" />
        </Section>
      )}
      {others.length > 0 && (
        <Section title="Sites">
          <Table
            label="Sites"
            rows={others}
            columns={[
              { title: "Site", cell: (each) => line(each.site, 120) },
              { title: "Outcome", cell: (each) => [STATUS[each.status] ?? each.status, each.partial].filter(Boolean).join(", ") },
              { title: "Attempts", isNumber: true, cell: (each) => number(each.attempts) },
              { title: "States", isNumber: true, cell: (each) => (each.states === null ? "" : number(each.states)) },
              { title: "Actions", isNumber: true, cell: (each) => (each.actions === null ? "" : number(each.actions)) },
              { title: "Seconds", isNumber: true, cell: (each) => (each.seconds ? each.seconds.toFixed(1) : "") },
            ]}
          />
          <More left={totals.sites - totals.failed - others.length} where="report.json" />
        </Section>
      )}
    </>
  );
}

function spread(numbers: Quartiles, what: string): string {
  if (numbers.count === 1) return `One site: ${formatNumber(numbers.median)} ${what}.`;
  return (
    `Median ${formatNumber(numbers.median)} ${what}, half of the sites between ${formatNumber(numbers.lower)} and ` +
    `${formatNumber(numbers.upper)}, least ${formatNumber(numbers.least)}, most ${formatNumber(numbers.most)}; ` +
    `${number(numbers.count)} sites.`
  );
}
