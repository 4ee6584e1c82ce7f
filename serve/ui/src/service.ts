/** Requests to the service: addresses relative to the page, the API key of this tab, errors as values with a cause. */

import type { Problem } from "./types";

const KEY_NAME = "waygraph-key";
/** Images kept in memory; a page of a map shows fewer at once. */
const MAX_IMAGES = 400;

export type FailureCause = "key" | "gone" | "missing" | "refused";

/** A request that failed. `cause`: the key is missing or wrong, the service does not answer, nothing is there, other. */
export class RequestFailure extends Error {
  constructor(
    readonly why: FailureCause,
    message: string,
    readonly hint = "",
    readonly status = 0,
  ) {
    super(message);
  }
}

/** Directory of the page: everything is requested relative to it, so that any path prefix works. */
const base = new URL("./", document.baseURI);

export function serviceUrl(path: string): string {
  return new URL(path.replace(/^\//, ""), base).href;
}

export function apiKey(): string {
  return sessionStorage.getItem(KEY_NAME) ?? "";
}

export function setApiKey(key: string): void {
  if (key) sessionStorage.setItem(KEY_NAME, key);
  else sessionStorage.removeItem(KEY_NAME);
}

/** Path of a site in the API; keys contain colons and brackets. */
export function sitePath(site: string): string {
  return `v1/sites/${encodeURIComponent(site)}`;
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const key = apiKey();
  let response: Response;
  try {
    response = await fetch(serviceUrl(path), {
      ...init,
      headers: { ...init.headers, ...(key ? { authorization: `Bearer ${key}` } : {}) },
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new RequestFailure("gone", "The service does not answer.", "Is it still running?");
  }
  if (response.ok) return response;
  const failure = await failureOf(response);
  // Another key was entered while the request ran, or while its answer was read.
  if (failure.why === "key" && apiKey() !== key) return send(path, init);
  throw failure;
}

async function failureOf(response: Response): Promise<RequestFailure> {
  let problem: Partial<Problem> = {};
  if (response.headers.get("content-type")?.startsWith("application/problem+json")) {
    problem = (await response.json()) as Problem;
  }
  const message = problem.detail || `The service answered ${response.status}.`;
  const why: FailureCause =
    response.status === 401 ? "key"
    : response.status === 404 || response.status === 410 ? "missing"
    : response.status === 502 || response.status === 504 ? "gone"
    : "refused";
  return new RequestFailure(why, message, problem.hint ?? "", response.status);
}

export async function getJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await send(path, signal ? { signal } : {});
  return (await response.json()) as T;
}

export async function postJson<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const response = await send(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
    ...(signal ? { signal } : {}),
  });
  return (await response.json()) as T;
}

/** Fetch a file, with the key, and save it. */
export async function saveFile(path: string, name: string): Promise<void> {
  const response = await send(path, {});
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has begun to save it when the click returns; it keeps what it needs.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const images = new Map<string, Promise<string>>();
/** Where a report has its images; null: they are fetched from the service. */
let imageSource: ((path: string) => string | undefined) | null = null;

export function hasImageSource(): boolean {
  return imageSource !== null;
}

export function setImageSource(find: (path: string) => string | undefined): void {
  imageSource = find;
}

/** Fetch an image, with the key, and return an address for it that elements can show. */
export function imageUrl(path: string): Promise<string> {
  if (imageSource !== null) {
    const url = imageSource(path);
    return url === undefined ? Promise.reject(new RequestFailure("missing", "Not in this file.")) : Promise.resolve(url);
  }
  let found = images.get(path);
  if (found === undefined) {
    found = send(path, {}).then(async (response) => URL.createObjectURL(await response.blob()));
    // A failure is not kept: the service may answer later.
    found.catch(() => images.delete(path));
  } else {
    images.delete(path); // used most recently: to the end of the map
  }
  images.set(path, found);
  if (images.size > MAX_IMAGES) {
    const [oldest, url] = images.entries().next().value!;
    images.delete(oldest);
    url.then((each) => URL.revokeObjectURL(each)).catch(() => undefined);
  }
  return found;
}

export function thumbnailPath(site: string, nodeId: string, screenshot: string): string {
  return `${sitePath(site)}/nodes/${nodeId}/thumbnail?v=${screenshot}`;
}
