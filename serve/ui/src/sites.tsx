/** The mapped sites as cards. */

import { useState } from "preact/hooks";

import { useLoaded } from "./loading";
import { Empty, Failure, Loading } from "./parts/feedback";
import { ServiceImage } from "./parts/service_image";
import { mapHref } from "./route";
import { getJson } from "./service";
import type { SiteCard } from "./types";
import { ago, count, duration, line } from "./words";

export function Sites() {
  const loaded = useLoaded("sites", (signal) => getJson<SiteCard[]>("v1/cards", signal));
  const [text, setText] = useState("");
  if (loaded.status === "loading") return <Loading what="the sites" />;
  if (loaded.status === "failed") return <Failure failure={loaded.failure} />;
  const sites = loaded.value;
  if (!sites.length) {
    return (
      <Empty title="No site is mapped yet">
        <p>
          Map one with <code>waygraph index https://example.org</code>. It appears here when the run is done.
        </p>
      </Empty>
    );
  }
  const shown = sites.filter((site) => site.site.includes(text.trim().toLowerCase()));
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
      </div>
      {shown.length ? (
        <ul class="cards">
          {shown.map((site) => (
            <Card key={site.site} site={site} />
          ))}
        </ul>
      ) : (
        <Empty title={`No site is named like “${line(text, 80)}”`} />
      )}
    </main>
  );
}

function Card({ site }: { site: SiteCard }) {
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
        </div>
      </a>
    </li>
  );
}

function outcomeOf(site: SiteCard): { kind: "good" | "partial"; text: string } {
  const { skipped = 0, failed = 0, pending = 0 } = site.outcomes;
  const parts = [
    failed ? `${count(failed, "action")} failed` : "",
    skipped ? `${count(skipped, "element")} skipped` : "",
    pending ? `${count(pending, "element")} pending` : "",
  ].filter(Boolean);
  const rest = parts.length ? `: ${parts.join(", ")}` : "";
  if (!site.partial) return { kind: "good", text: `Complete${rest}` };
  const by = site.stopped_by ? ` by ${line(site.stopped_by.replaceAll("_", " "), 60)}` : "";
  return { kind: "partial", text: `Stopped early${by}${rest}` };
}
