/** The mapped sites as cards, with the progress of runs that are going on. */

import { useRef, useState } from "preact/hooks";

import { useLoaded, usePolled } from "./loading";
import { Empty, Failure, Loading } from "./parts/feedback";
import { ServiceImage } from "./parts/service_image";
import { mapHref } from "./route";
import { getJson } from "./service";
import type { ActiveSite, RunProgress, SiteCard } from "./types";
import { ago, count, duration, line, number } from "./words";

const POLL_MS = 2_000;

export function Sites() {
  const runs = usePolled((signal) => getJson<RunProgress[]>("v1/progress", signal), POLL_MS) ?? [];
  const active = new Map(runs.flatMap((run) => run.active.map((site) => [site.site, site] as const)));
  // When a site is no longer worked on, its map may be a new one.
  const loaded = useLoaded(`sites ${useEndings([...active.keys()])}`, (signal) => getJson<SiteCard[]>("v1/cards", signal));
  const kept = useRef<readonly SiteCard[] | null>(null);
  if (loaded.status === "loaded") kept.current = loaded.value;
  const [text, setText] = useState("");
  if (loaded.status === "failed" && !kept.current) return <Failure failure={loaded.failure} />;
  if (!kept.current) return <Loading what="the sites" />;
  const sites = kept.current;
  const isMapped = new Set(sites.map((site) => site.site));
  const begun = [...active.values()].filter((site) => !isMapped.has(site.site));
  if (!sites.length && !begun.length) {
    return (
      <Empty title="No site is mapped yet">
        <p>
          Map one with <code>waygraph index https://example.org</code>. It appears here while the run goes on.
        </p>
        <Runs runs={runs} />
      </Empty>
    );
  }
  const isWanted = ({ site }: { site: string }) => site.includes(text.trim().toLowerCase());
  const shown = sites.filter(isWanted);
  const shownBegun = begun.filter(isWanted);
  return (
    <main class="page" id="main" tabIndex={-1}>
      <div class="page-head">
        <h1>Sites</h1>
        <p class="muted">{count(sites.length, "mapped site")}</p>
        {sites.length > 6 && (
          <label class="find">
            <span class="hidden">Find a site</span>
            <input
              type="search"
              placeholder="Find a site"
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
        )}
        <Runs runs={runs} />
      </div>
      {shown.length || shownBegun.length ? (
        <ul class="cards">
          {shownBegun.map((site) => (
            <BegunCard key={site.site} site={site} />
          ))}
          {shown.map((site) => (
            <Card key={site.site} site={site} active={active.get(site.site)} />
          ))}
        </ul>
      ) : (
        <Empty title={`No site is named like “${line(text, 80)}”`} />
      )}
    </main>
  );
}

/** How often a name was in the list and then was not. */
function useEndings(names: readonly string[]): number {
  const before = useRef<readonly string[]>([]);
  const endings = useRef(0);
  if (before.current.some((name) => !names.includes(name))) endings.current++;
  before.current = names;
  return endings.current;
}

/** Runs of several sites: how far they are. */
function Runs({ runs }: { runs: readonly RunProgress[] }) {
  const several = runs.filter((run) => run.sites > 1);
  if (!several.length) return null;
  return (
    <ul class="runs" aria-label="Runs that are going on">
      {several.map((run) => {
        const { failed = 0, ...others } = run.done;
        const done = Object.values(others).reduce((sum, each) => sum + each, failed);
        return (
          <li key={run.run_id}>
            Run {line(run.run_id, 40)} ({line(run.work, 60)}): {number(done)} of {count(run.sites, "site")} done
            {failed > 0 && `, ${number(failed)} failed`}, {number(run.active.length)} in progress
          </li>
        );
      })}
    </ul>
  );
}

function Card({ site, active }: { site: SiteCard; active: ActiveSite | undefined }) {
  const outcome = outcomeOf(site);
  return (
    <li>
      <a class="card" href={mapHref(site.site)}>
        <ServiceImage path={site.thumbnail} alt="" />
        <div class="card-text">
          <h2>{line(site.site, 120)}</h2>
          <p>
            {count(site.states, "state")} · {count(site.edges, "edge")}
            {site.leads > 0 && <> · {count(site.leads, "page")} not visited</>}
          </p>
          <p class="muted">
            <time dateTime={site.created} title={site.created}>
              Mapped {ago(site.created)}
            </time>
            {site.seconds !== null && <> in {duration(site.seconds)}</>} · version {site.version}
          </p>
          <p class={`outcome outcome-${outcome.kind}`}>{outcome.text}</p>
          {active && <Progress site={active} />}
        </div>
      </a>
    </li>
  );
}

/** A site that is being mapped for the first time. */
function BegunCard({ site }: { site: ActiveSite }) {
  return (
    <li>
      <div class="card card-new">
        <ServiceImage path={null} alt="" missing="No map yet" />
        <div class="card-text">
          <h2>{line(site.site, 120)}</h2>
          <Progress site={site} />
        </div>
      </div>
    </li>
  );
}

function Progress({ site }: { site: ActiveSite }) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(site.since)) / 1000));
  const parts = [
    site.states ? count(site.states, "state") : "",
    site.edges ? count(site.edges, "edge") : "",
    site.pending ? `${number(site.pending)} pending` : "",
    site.failed ? `${number(site.failed)} failed` : "",
    seconds < 60 ? `${seconds} s` : duration(seconds),
    site.attempt > 1 ? `attempt ${site.attempt}` : "",
  ];
  return (
    <p class="progress">
      <span class="spinner" aria-hidden="true" />
      <span>
        {site.phase === "exploring" ? "Being explored" : "Being encoded"}: {parts.filter(Boolean).join(", ")}
      </span>
    </p>
  );
}

export function outcomeOf(site: SiteCard): { kind: "good" | "partial"; text: string } {
  const { skipped = 0, failed = 0, pending = 0 } = site.outcomes;
  const parts = [
    failed ? `${count(failed, "action")} failed` : "",
    skipped ? `${count(skipped, "element")} skipped` : "",
    pending ? `${count(pending, "element")} pending` : "",
  ].filter(Boolean);
  const rest = parts.length ? `: ${parts.join(", ")}` : "";
  const by = site.stopped_by ? ` by ${line(site.stopped_by.replaceAll("_", " "), 60)}` : "";
  if (site.partial) return { kind: "partial", text: `Stopped early${by}${rest}` };
  // A limit of states or actions is no early end: the map is what was asked for, and still not all of the site.
  return pending ? { kind: "partial", text: `Ended${by || " by its limits"}${rest}` } : { kind: "good", text: `Complete${rest}` };
}
