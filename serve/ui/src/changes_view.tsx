/** Two versions of a map: what changed, with the states before and after beside each other. */

import { useEffect, useMemo, useRef } from "preact/hooks";

import { useLoaded } from "./loading";
import { Empty, Failure, Loading } from "./parts/feedback";
import { Limited } from "./parts/limited";
import { ServiceImage } from "./parts/service_image";
import { changesHref, go, mapHref, replace, type Route } from "./route";
import { getJson, sitePath } from "./service";
import type { ActionChange, ChangesAnswer, SiteFacts, StateChange } from "./types";
import { actionText, ago, count, dateTime, isWebUrl, line, number, shortUrl } from "./words";

const VERDICTS: Record<StateChange["verdict"], string> = {
  changed: "Changed states",
  added: "New states",
  gone: "States that are gone",
  moved: "States with another id",
};

export function ChangesView({ route }: { route: Route }) {
  const { site, query } = route;
  const from = query.get("from") ?? "";
  const to = query.get("to") ?? "";
  const facts = useLoaded(`facts ${site}`, (signal) => getJson<SiteFacts>(sitePath(site), signal));
  const wanted = new URLSearchParams({ ...(from && { from }), ...(to && { to }) });
  const loaded = useLoaded(`changes ${site} ${wanted}`, (signal) =>
    getJson<ChangesAnswer>(`${sitePath(site)}/changes?${wanted}`, signal),
  );
  if (facts.status === "failed") {
    return (
      <Failure failure={facts.failure}>
        <a href="#/">All sites</a>
      </Failure>
    );
  }
  if (facts.status === "loading") return <Loading what="the versions" />;
  if (facts.value.versions.length < 2) {
    return (
      <Empty title="There is one version of this map">
        <p>
          Map the site again to see what changed: <code>waygraph refresh {line(site, 80)}</code>
        </p>
        <p>
          <a href={mapHref(site)}>The map</a>
        </p>
      </Empty>
    );
  }
  if (loaded.status === "loading") return <Loading what="what changed" />;
  if (loaded.status === "failed") {
    return (
      <Failure failure={loaded.failure}>
        <a href={changesHref(site)}>The last two versions</a>
      </Failure>
    );
  }
  return <Changes route={route} answer={loaded.value} />;
}

function keyOf(change: StateChange): string {
  return change.after || change.before;
}

interface ChangesProps {
  route: Route;
  answer: ChangesAnswer;
  /** In a report there are no other versions and no map. */
  isReport?: boolean;
}

export function Changes({ route, answer, isReport = false }: ChangesProps) {
  const { site, query } = route;
  const { states } = answer;
  const wanted = query.get("state") ?? "";
  const at = Math.max(0, states.findIndex((change) => keyOf(change) === wanted));
  const selected = query.get("actions") ? undefined : states[at];
  const list = useRef<HTMLDivElement>(null);
  const range = { from: String(answer.from_version), to: String(answer.to_version) };
  const stateHref = (change: StateChange) => changesHref(site, { ...range, state: keyOf(change) });
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if ((event.target as HTMLElement).matches("input, select, textarea")) return;
      const next = states[at + ({ ArrowDown: 1, ArrowUp: -1 }[event.key] ?? NaN)];
      if (!next || event.ctrlKey || event.metaKey || event.altKey) return;
      replace(stateHref(next));
      event.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [at, answer]);
  useEffect(() => {
    list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }, [at]);
  const groups = useMemo(
    () =>
      Object.entries(VERDICTS).flatMap(([verdict, heading]) => {
        const members = states.filter((change) => change.verdict === verdict);
        const urls = new Set(members.map(({ url }) => url));
        return members.length ? [{ verdict, heading, members, withIds: urls.size < members.length }] : [];
      }),
    [answer],
  );
  return (
    <main class="replay" id="main" tabIndex={-1}>
      <section class="panel" aria-label="Changes">
        <h1 class="hidden">Changes of {line(site, 80)}</h1>
        {isReport ? (
          <p>
            Version {answer.from_version}, {dateTime(answer.from_created)} → version {answer.to_version},{" "}
            {dateTime(answer.to_created)}
          </p>
        ) : (
          <Versions answer={answer} onChange={(change) => go(changesHref(site, { ...range, ...change }))} />
        )}
        <p class="muted">{summaryOf(answer)}</p>
        {(answer.actions_total > 0 || answer.broken_total > 0 || answer.tools_total > 0) && (
          <p>
            <a class="button" href={changesHref(site, { ...range, actions: "all" })} aria-current={query.get("actions") ? "true" : undefined}>
              {count(answer.actions_total, "changed action")}
              {answer.broken_total > 0 && `, ${count(answer.broken_total, "broken path")}`}
              {answer.tools_total > 0 && `, ${count(answer.tools_total, "changed tool")}`}
            </a>
          </p>
        )}
        <div ref={list}>
          {groups.map(({ verdict, heading, members, withIds }) => (
            <div class="change-group" key={verdict}>
              <h2>
                <span class={`dot dot-${verdict}`} aria-hidden="true" /> {heading}{" "}
                <span class="count">{number(answer.counts.states[verdict as StateChange["verdict"]] ?? members.length)}</span>
              </h2>
              <Limited items={members} limit={Math.max(100, at + 1)} label={heading}>
                {(change) => (
                  <li key={keyOf(change)}>
                    <a
                      class={`row ${change === selected ? "row-pointed" : ""}`}
                      href={stateHref(change)}
                      aria-current={change === selected ? "true" : undefined}
                    >
                      <span dir="auto">{line(change.title, 120) || "Without a title"}</span>
                      <span class="muted">
                        {shortUrl(change.url, site)}
                        {withIds && ` · ${(change.after || change.before).slice(0, 8)}`}
                      </span>
                    </a>
                  </li>
                )}
              </Limited>
            </div>
          ))}
        </div>
      </section>
      {query.get("actions") ? (
        <Actions site={site} answer={answer} />
      ) : selected ? (
        <StatePair site={site} answer={answer} change={selected} hasMap={!isReport} />
      ) : (
        <Empty title="No state changed">
          <p>Differences in noise, or in numbers only, are no changes.</p>
        </Empty>
      )}
    </main>
  );
}

function Versions({ answer, onChange }: { answer: ChangesAnswer; onChange: (change: Record<string, string>) => void }) {
  const fields: ["from" | "to", string, number, string][] = [
    ["from", "From version", answer.from_version, answer.from_created],
    ["to", "To version", answer.to_version, answer.to_created],
  ];
  return (
    <div class="versions">
      {fields.map(([name, label, value, created]) => (
        <label class="field" key={name}>
          <span>{label}</span>
          <select value={String(value)} onChange={(event) => onChange({ [name]: event.currentTarget.value })}>
            {answer.versions.map((version) => (
              <option
                key={version}
                value={String(version)}
                disabled={version === (name === "from" ? answer.to_version : answer.from_version)}
              >
                {version}
              </option>
            ))}
          </select>
          <time class="muted" dateTime={created} title={created}>
            {ago(created)}
          </time>
        </label>
      ))}
    </div>
  );
}

function summaryOf(answer: ChangesAnswer): string {
  const { match = 0, changed = 0, added = 0, gone = 0, moved = 0 } = answer.counts.states;
  const parts = [
    changed ? `${number(changed)} changed` : "",
    added ? `${number(added)} new` : "",
    gone ? `${number(gone)} gone` : "",
    moved ? `${number(moved)} with another id` : "",
    `${count(match, "state")} unchanged`,
  ];
  return parts.filter(Boolean).join(" · ");
}

interface PairProps {
  site: string;
  answer: ChangesAnswer;
  change: StateChange;
  hasMap: boolean;
}

function StatePair({ site, answer, change, hasMap }: PairProps) {
  const isCurrent = answer.to_version === Math.max(...answer.versions);
  return (
    <section class="panel step-details" aria-label="State">
      <div class="step-head">
        <h2 dir="auto">{line(change.title, 300) || "Without a title"}</h2>
        <span class={`tag tag-${change.verdict}`}>{change.verdict === "added" ? "new" : change.verdict}</span>
      </div>
      <p class="url">
        {isWebUrl(change.url) ? (
          <a href={change.url} target="_blank" rel="noopener noreferrer">
            {shortUrl(change.url, site)}
          </a>
        ) : (
          line(change.url)
        )}
        {change.previous_url && <span class="muted"> was {shortUrl(change.previous_url, site)}</span>}
      </p>
      {change.after && isCurrent && hasMap && (
        <p>
          <a class="button" href={mapHref(site, change.after)}>
            Show it on the map
          </a>
        </p>
      )}
      <div class="pair">
        <VersionFigure caption={`Version ${answer.from_version}`} id={change.before} path={change.screenshot_before} alt="Before" />
        <VersionFigure caption={`Version ${answer.to_version}`} id={change.after} path={change.screenshot_after} alt="After" />
      </div>
      <div class="pair pair-texts">
        <TextList label="Texts that are gone" mark="−" kind="removed" texts={change.removed} />
        <TextList label="New texts" mark="+" kind="added" texts={change.added} />
      </div>
    </section>
  );
}

function VersionFigure({ caption, id, path, alt }: { caption: string; id: string; path: string | null; alt: string }) {
  return (
    <figure>
      <figcaption>
        <strong>{caption}</strong>
        {!id && <span> does not have this state</span>}
      </figcaption>
      <ServiceImage path={path} alt={`${alt}: ${caption}`} missing={id ? "No screenshot" : "Not in this version"} />
      {id && (
        <p class="id">
          <code>{id}</code>
        </p>
      )}
    </figure>
  );
}

function TextList({ label, mark, kind, texts }: { label: string; mark: string; kind: string; texts: readonly string[] }) {
  if (!texts.length) return <div />;
  return (
    <div>
      <h3>{label}</h3>
      <ul class={`texts texts-${kind}`} aria-label={label}>
        {texts.map((text, key) => (
          <li key={key} dir="auto">
            <span aria-hidden="true">{mark}</span> {line(text)}
          </li>
        ))}
      </ul>
    </div>
  );
}

const ACTION_VERDICTS: Record<ActionChange["verdict"], string> = {
  changed: "leads elsewhere",
  gone: "gone",
  added: "new",
  session_dependent: "depends on the session",
  non_deterministic: "leads to different states",
};

function Actions({ site, answer }: { site: string; answer: ChangesAnswer }) {
  return (
    <section class="panel step-details" aria-label="Changed actions">
      {answer.broken.length > 0 && (
        <>
          <h2>Paths that no longer lead to their states</h2>
          <Limited items={answer.broken} limit={50} label="Broken paths">
            {(each, key) => (
              <li key={key} class="row">
                <span dir="auto">{line(each.title, 120) || shortUrl(each.url, site)}</span>
                <span class="muted" dir="auto">
                  broken at: {actionText(each.action)}
                </span>
              </li>
            )}
          </Limited>
        </>
      )}
      {answer.tools.length > 0 && (
        <>
          <h2>Changed tools</h2>
          <Limited items={answer.tools} limit={50} label="Changed tools">
            {(each, key) => (
              <li key={key} class="row">
                <span dir="auto">
                  <span class={`tag tag-${each.verdict}`}>{each.verdict === "added" ? "new" : each.verdict}</span> {line(each.name, 100)}
                </span>
                <span class="muted" dir="auto">
                  {line([...each.inputs, ...each.attributes].join(", "))}
                </span>
              </li>
            )}
          </Limited>
        </>
      )}
      <h2>Changed actions</h2>
      {answer.actions.length < answer.actions_total && (
        <p class="muted">
          The first {number(answer.actions.length)} of {number(answer.actions_total)}.
        </p>
      )}
      <Limited items={answer.actions} limit={100} label="Changed actions">
        {(each, key) => (
          <li key={key} class="row">
            <span dir="auto">
              <span class={`tag tag-${each.verdict}`}>{ACTION_VERDICTS[each.verdict]}</span> {actionText(each.action)}
            </span>
            <span class="muted">
              on {shortUrl(each.source_url, site)}
              {each.previous_target_url && ` · led to ${shortUrl(each.previous_target_url, site)}`}
              {each.target_url && ` · leads to ${shortUrl(each.target_url, site)}`}
            </span>
          </li>
        )}
      </Limited>
    </section>
  );
}
