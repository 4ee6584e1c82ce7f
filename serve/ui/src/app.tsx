/** The frame around all views: header, API key, and what is shown when the service does not answer. */

import { useEffect, useState } from "preact/hooks";

import { ChangesView } from "./changes_view";
import { retryAll, setFailureHandler } from "./loading";
import { MapView } from "./map_view";
import { Empty } from "./parts/feedback";
import { KeyDialog } from "./parts/key_dialog";
import { useFileDrop } from "./replay/open_file";
import { ReplayView } from "./replay/replay_view";
import { changesHref, mapHref, replayHref, searchHref, useRoute } from "./route";
import { apiKey, serviceUrl, setApiKey } from "./service";
import { Sites } from "./sites";
import { line } from "./words";

const CHECK_MS = 2_000;

export function App() {
  const route = useRoute();
  const isFileOver = useFileDrop();
  const [needsKey, setNeedsKey] = useState("");
  const [isGone, setIsGone] = useState(false);
  useEffect(() => {
    setFailureHandler((failure) => {
      if (failure.why === "key") setNeedsKey(failure.message);
      else setIsGone(true);
    });
  }, []);
  useEffect(() => {
    if (!isGone) return;
    const timer = setInterval(() => {
      void fetch(serviceUrl("healthz"), { cache: "no-store" }).then(
        (response) => {
          if (!response.ok) return;
          setIsGone(false);
          retryAll();
        },
        () => undefined, // still gone: the next check
      );
    }, CHECK_MS);
    return () => clearInterval(timer);
  }, [isGone]);
  const { site } = route;
  useEffect(() => {
    const name = site ? line(site, 80) : route.view === "replay" ? "Replay" : "";
    document.title = name ? `${name} · waygraph` : "waygraph";
  }, [site, route.view]);
  return (
    <>
      <a class="skip" href="#main" onClick={skipToMain}>
        Skip to the content
      </a>
      <header class="bar">
        <a class="brand" href="#/" aria-label="waygraph: all sites">
          <svg viewBox="0 0 32 32" aria-hidden="true" width="22" height="22">
            <path d="M9 10l7 12 7-12" />
            <circle cx="9" cy="10" r="3.5" />
            <circle cx="23" cy="10" r="3.5" />
            <circle cx="16" cy="22" r="3.5" />
          </svg>
          <span>waygraph</span>
        </a>
        {site && (
          <nav aria-label="Site">
            <span class="site-name" title={site}>
              {line(site, 80)}
            </span>
            <a href={mapHref(site)} aria-current={route.view === "map" ? "page" : undefined}>
              Map
            </a>
            <a href={searchHref(site)} aria-current={route.view === "search" ? "page" : undefined}>
              Search
            </a>
            <a href={changesHref(site)} aria-current={route.view === "changes" ? "page" : undefined}>
              Changes
            </a>
          </nav>
        )}
        <a class="bar-link" href={replayHref()} aria-current={route.view === "replay" ? "page" : undefined}>
          Replay
        </a>
        {apiKey() && (
          <button
            type="button"
            class="quiet forget"
            onClick={() => {
              setApiKey("");
              location.reload();
            }}
          >
            Forget the key
          </button>
        )}
      </header>
      {isGone && (
        <div class="banner" role="alert">
          The service does not answer. What is shown stays; the page goes on as soon as it is back.
        </div>
      )}
      {route.view === "sites" && <Sites />}
      {(route.view === "map" || route.view === "search") && <MapView key={site} route={route} />}
      {route.view === "changes" && <ChangesView key={site} route={route} />}
      {route.view === "replay" && <ReplayView route={route} />}
      {route.view === "unknown" && (
        <Empty title="There is no such page">
          <p>
            <a href="#/">All sites</a>
          </p>
        </Empty>
      )}
      {isFileOver && <div class="drop-cover">Drop it to replay it</div>}
      {needsKey && (
        <KeyDialog
          message={needsKey}
          onCancel={() => setNeedsKey("")}
          onDone={() => {
            setNeedsKey("");
            retryAll();
          }}
        />
      )}
    </>
  );
}

function skipToMain(event: Event): void {
  event.preventDefault(); // the address is the route
  document.getElementById("main")?.focus();
}
