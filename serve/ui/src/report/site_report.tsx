/** The report of one site: its map, how it was discovered, how much of it was acted on, and what was left out. */

import { useMemo, useRef, useState } from "preact/hooks";

import { buildModel, titleOf } from "../map/model";
import { outcomeOf } from "../sites";
import { thumbnailPath } from "../service";
import { Table } from "../parts/table";
import { count, dateTime, duration, isWebUrl, line, number, shortUrl } from "../words";
import { Bars, Columns, formatNumber } from "./charts";
import type { OutcomeRow, ReasonCount, SiteContent } from "./document";
import { More, Numbers, Section, Sheet } from "./parts";
import { SiteMap } from "./site_map";

const LEVELS = ["done", "skipped", "failed", "pending"] as const;
const LEVEL_WORDS = { done: "acted on", skipped: "skipped", failed: "failed", pending: "pending" };

export function SiteReport({ content }: { content: SiteContent }) {
  const { card, graph } = content;
  const model = useMemo(() => buildModel(graph), [graph]);
  const [selected, setSelected] = useState(-1);
  const map = useRef<HTMLDivElement>(null);
  const outcome = outcomeOf(card);
  const { id, url, screenshot } = graph.states;
  const imageOf = (state: number) => (screenshot[state] ? thumbnailPath(card.site, id[state]!, screenshot[state]!) : null);
  const choose = (state: number) => {
    setSelected(state);
    map.current?.scrollIntoView({ block: "start" });
  };
  return (
    <main class="page report" id="main" tabIndex={-1}>
      <div class="report-head">
        <h1>{line(card.site, 120)}</h1>
        <p>
          {isWebUrl(card.start_url) ? (
            <a href={card.start_url} target="_blank" rel="noopener noreferrer">
              {line(card.start_url, 120)}
            </a>
          ) : (
            line(card.start_url, 120)
          )}
          <span class="muted">
            {" · "}version {card.version}
            {content.versions.length > 1 && ` of ${content.versions.length}`}, published {dateTime(card.created)}
            {card.seconds !== null && `, explored in ${duration(card.seconds)}`}
          </span>
        </p>
        <p class={`outcome outcome-${outcome.kind}`}>{outcome.text}</p>
      </div>
      <Numbers
        items={[
          [card.states, "state", "states"],
          [card.edges, "edge", "edges"],
          [card.depth, "action deep", "actions deep"],
          [card.leads, "page known, not visited", "pages known, not visited"],
          [card.stood_for, "page that another stands for", "pages that others stand for"],
        ]}
      />
      <div ref={map}>
        <Section title="Map" note="Choose a state to see it; a stack holds alike pages and opens. Plus, minus and the buttons zoom.">
          {model.states > 0 && <SiteMap model={model} site={card.site} selected={selected} onSelect={setSelected} />}
        </Section>
      </div>
      {content.depths.length > 0 && (
        <Section title="Discovery velocity by depth">
          <Columns
            label="New states per minute by depth"
            unit="new states per minute of exploring"
            columns={content.depths.map(({ depth, states, activations, seconds }) => ({
              label: `depth ${depth}`,
              value: seconds > 0 ? (60 * states) / seconds : 0,
              note: `${number(states)} new, ${count(activations, "action")}`,
            }))}
          />
        </Section>
      )}
      <Coverage content={content} />
      <Reasons title="Skipped elements, by reason" kind="pale" reasons={content.skipped} />
      <Reasons title="Failed actions, by reason" kind="bad" reasons={content.failed} />
      <LeftOut content={content} onChoose={choose} />
      {content.advice.length > 0 && (
        <Section title="Advice" note="Requests that were stopped and seem to have broken a page.">
          <ul class="plain">
            {content.advice.map((each, at) => (
              <li key={at}>{line(each, 500)}</li>
            ))}
          </ul>
        </Section>
      )}
      {content.sheet.length > 0 && (
        <Section
          title="States"
          note={content.sheet.length < card.states ? `${number(content.sheet.length)} of ${number(card.states)}, evenly from the map.` : ""}
        >
          <Sheet
            onChoose={(at) => choose(content.sheet[at]!)}
            pictures={content.sheet.map((state) => ({
              image: imageOf(state),
              caption: titleOf(model, state),
              note: shortUrl(url[state]!, card.site),
            }))}
          />
        </Section>
      )}
    </main>
  );
}

/** Of everything that was discovered, how much was acted on or visited. */
function Coverage({ content }: { content: SiteContent }) {
  const { elements, card } = content;
  const found = card.states + card.leads;
  const total = elements ? LEVELS.reduce((sum, level) => sum + elements[level], 0) : 0;
  return (
    <Section title="Coverage">
      {elements && total > 0 ? (
        <>
          <p>
            Of {count(total, "discovered element")}, {formatNumber((100 * elements.done) / total)}% were acted on.
          </p>
          <div class="share" aria-hidden="true">
            {LEVELS.map((level) => elements[level] > 0 && <span key={level} class={`share-${level}`} style={{ flexGrow: elements[level] }} />)}
          </div>
          <ul class="share-legend">
            {LEVELS.map((level) => (
              <li key={level}>
                <span class={`share-dot share-${level}`} aria-hidden="true" />
                {number(elements[level])} {LEVEL_WORDS[level]}
              </li>
            ))}
          </ul>
        </>
      ) : (
        <p class="muted">Outcomes of elements were not recorded with this version.</p>
      )}
      {card.leads > 0 && (
        <p>
          Of {count(found, "known page")}, {number(card.leads)} {card.leads === 1 ? "was" : "were"} not visited: the map knows them from links only.
        </p>
      )}
    </Section>
  );
}

function Reasons({ title, kind, reasons }: { title: string; kind: "bad" | "pale"; reasons: readonly ReasonCount[] }) {
  if (!reasons.length) return null;
  const rows = reasons.map(({ reason, count: value, example }) => ({
    label: reason.replaceAll("_", " "),
    value,
    note: example && `for example ${line(example, 160)}`,
  }));
  return (
    <Section title={title}>
      <Bars rows={rows} kind={kind} label={title} />
    </Section>
  );
}

function LeftOut({ content, onChoose }: { content: SiteContent; onChoose: (state: number) => void }) {
  const { outcomes, outcomes_total: total, card } = content;
  if (!outcomes.length) return null;
  return (
    <Section title="Elements that are not in the map" note="Failed ones first, then a few for each reason.">
      <Table
        label="Elements that are not in the map"
        rows={outcomes}
        columns={[
          { title: "", cell: (row: OutcomeRow) => <span class={`tag tag-${row.status}`}>{row.status}</span> },
          { title: "Element", cell: (row) => line(row.element, 160) },
          {
            title: "Reason",
            cell: (row) => (
              <>
                {line(row.reason.replaceAll("_", " "), 60)}
                {row.detail && row.detail !== row.target && <span class="muted">: {line(row.detail, 160)}</span>}
              </>
            ),
          },
          {
            title: "On",
            cell: (row) =>
              row.state < 0 ? (
                ""
              ) : (
                <button type="button" class="quiet" onClick={() => onChoose(row.state)}>
                  {shortUrl(content.graph.states.url[row.state]!, card.site).slice(0, 80)}
                </button>
              ),
          },
        ]}
      />
      <More left={total - outcomes.length} where={`waygraph show ${line(card.site, 80)} --skipped`} />
    </Section>
  );
}
