/** The report of a run whose tasks were done several times: how much the results differ. */

import { Table } from "../parts/table";
import { count, line, number } from "../words";
import type { RepeatsContent } from "./document";
import { More, Numbers, Section } from "./parts";

const percent = (rate: number) => `${(100 * rate).toFixed(1)}%`;

export function RepeatsReport({ content }: { content: RepeatsContent }) {
  const { repeats } = content;
  return (
    <main class="page report" id="main" tabIndex={-1}>
      <div class="report-head">
        <h1>Run {line(content.name, 120)}</h1>
        <p class="muted">
          Each task was done {count(repeats.length, "time")}.
          {content.undecided > 0 && ` ${count(content.undecided, "result")} without a reward count as failures here.`}
        </p>
      </div>
      <Numbers
        items={[
          [repeats.length, "repeat", "repeats"],
          [percent(content.mean_success), "mean success"],
          [content.spread === null ? "" : percent(content.spread), "standard deviation"],
          [`${percent(content.lowest)} to ${percent(content.highest)}`, "range"],
        ]}
      />
      <Section title="Repeats">
        <Table
          label="Repeats"
          rows={repeats.map((each, at) => ({ ...each, at }))}
          columns={[
            { title: "Repeat", cell: ({ link, at }) => <a href={link}>{number(at + 1)}</a> },
            { title: "Succeeded", isNumber: true, cell: ({ successes, tasks }) => `${number(successes)} of ${number(tasks)}` },
            { title: "Rate", isNumber: true, cell: ({ successes, tasks }) => percent(successes / tasks) },
          ]}
        />
      </Section>
      <Section title="Tasks">
        <Table
          label="Tasks"
          rows={content.tasks}
          columns={[
            { title: "Task", cell: ({ id }) => line(id, 120) },
            { title: "Succeeded", isNumber: true, cell: ({ successes }) => `${number(successes)} of ${number(repeats.length)}` },
          ]}
        />
        <More left={content.left_out} where="waygraph score --json" />
      </Section>
    </main>
  );
}
