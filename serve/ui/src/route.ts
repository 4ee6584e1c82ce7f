/**
 * Addresses within the page: `#/`, `#/sites/SITE`, `#/sites/SITE/states/ID`, `#/sites/SITE/search?q=...`,
 * `#/sites/SITE/changes?from=N&to=M`, `#/replay?step=N&show=PART&state=N`.
 */

import { useEffect, useState } from "preact/hooks";

export interface Route {
  view: "sites" | "map" | "search" | "changes" | "replay" | "unknown";
  site: string;
  /** The selected state: a full id or a unique prefix; empty: none. */
  state: string;
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#/, "").split("?", 2);
  const query = new URLSearchParams(search);
  const parts = path.split("/").filter(Boolean).map(decode);
  const [first, site = "", third = "", state = ""] = parts;
  const base = { site, state: "", query };
  if (first === undefined) return { ...base, view: "sites" };
  if (first === "sites" && parts.length === 2) return { ...base, view: "map" };
  if (first === "sites" && third === "states" && parts.length === 4) return { ...base, view: "map", state };
  if (first === "sites" && third === "search" && parts.length === 3) {
    return { ...base, view: "search", state: query.get("state") ?? "" };
  }
  if (first === "sites" && third === "changes" && parts.length === 3) return { ...base, view: "changes" };
  if (first === "replay" && parts.length === 1) return { ...base, view: "replay" };
  return { ...base, view: "unknown" };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function mapHref(site: string, state = "", query?: URLSearchParams): string {
  const search = query?.toString();
  return `#/sites/${encodeURIComponent(site)}${state ? `/states/${state}` : ""}${search ? `?${search}` : ""}`;
}

export function searchHref(site: string, query: Record<string, string> = {}): string {
  const kept = Object.entries(query).filter(([, value]) => value);
  const search = new URLSearchParams(kept).toString();
  return `#/sites/${encodeURIComponent(site)}/search${search ? `?${search}` : ""}`;
}

export function changesHref(site: string, query: Record<string, string> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return `#/sites/${encodeURIComponent(site)}/changes${search ? `?${search}` : ""}`;
}

export function replayHref(query = new URLSearchParams()): string {
  return query.size ? `#/replay?${query}` : "#/replay";
}

export function go(href: string): void {
  location.hash = href;
}

/** Change the address without a new entry of the history: for what changes with every key press. */
export function replace(href: string): void {
  history.replaceState(null, "", href);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  return parseRoute(useHash());
}

export function useHash(): string {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const follow = () => setHash(location.hash);
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return hash;
}
