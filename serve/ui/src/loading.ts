/** Answers of the service as states of a component: loading, loaded or failed, loaded again when the service is back. */

import { useEffect, useState } from "preact/hooks";

import { RequestFailure } from "./service";

export type Loaded<T> =
  | { status: "loading" }
  | { status: "loaded"; value: T }
  | { status: "failed"; failure: RequestFailure };

type Listener = () => void;
const listeners = new Set<Listener>();
/** How often `retryAll` was called. */
let retries = 0;

/** Request everything that failed again: the key is another one, or the service is back. */
export function retryAll(): void {
  retries += 1;
  for (const listener of listeners) listener();
}

/** Called with every failure that concerns the whole page: a missing key, a service that does not answer. */
let onFailure: (failure: RequestFailure) => void = () => undefined;

export function setFailureHandler(handler: (failure: RequestFailure) => void): void {
  onFailure = handler;
}

export function asFailure(error: unknown): RequestFailure {
  if (error instanceof RequestFailure) return error;
  console.error(error);
  return new RequestFailure("refused", "The answer of the service could not be shown.", String(error));
}

export function report(error: unknown): RequestFailure {
  const failure = asFailure(error);
  if (failure.why === "key" || failure.why === "gone") onFailure(failure);
  return failure;
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** What a key was answered, and the number of retries when it was requested. */
interface Held<T> {
  key: string;
  result: Loaded<T>;
  begun: number;
}

/** Load a value for a key; another key aborts the request and loads again. An empty key loads nothing. */
export function useLoaded<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [held, setHeld] = useState<Held<T>>({ key: "", result: { status: "loading" }, begun: 0 });
  const [attempt, setAttempt] = useState(0);
  const failed = held.key === key && held.result.status === "failed";
  useEffect(() => {
    if (!failed) return;
    const again = () => setAttempt((each) => each + 1);
    // What failed was requested again after this request was sent, and before this effect runs.
    if (held.begun < retries) return again();
    listeners.add(again);
    return () => void listeners.delete(again);
  }, [failed, key, held.begun]);
  useEffect(() => {
    if (!key) return;
    const controller = new AbortController();
    const begun = retries;
    load(controller.signal).then(
      (value) => setHeld({ key, result: { status: "loaded", value }, begun }),
      (error: unknown) => {
        if (!isAbort(error)) setHeld({ key, result: { status: "failed", failure: report(error) }, begun });
      },
    );
    return () => controller.abort();
  }, [key, attempt]);
  return held.key === key ? held.result : { status: "loading" };
}

/**
 * Ask again and again while the page is visible; the last answer, or null. What fails is asked again too, but without a
 * key only when there is another one.
 */
export function usePolled<T>(load: (signal: AbortSignal) => Promise<T>, milliseconds: number): T | null {
  const [value, setValue] = useState<T | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    let timer = 0;
    let asked = 0;
    const ask = () => {
      timer = 0;
      const mine = ++asked;
      if (document.hidden) return; // asked again when it is visible
      load(controller.signal)
        .then(
          (found) => {
            setValue(found);
            return true;
          },
          (error: unknown) => !isAbort(error) && report(error).why !== "key",
        )
        .then((again) => {
          if (again && mine === asked && !controller.signal.aborted) timer = setTimeout(ask, milliseconds);
        });
    };
    const retry = () => {
      clearTimeout(timer);
      ask();
    };
    const show = () => {
      if (!document.hidden && !timer) ask();
    };
    ask();
    listeners.add(retry);
    document.addEventListener("visibilitychange", show);
    return () => {
      listeners.delete(retry);
      controller.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", show);
    };
  }, []);
  return value;
}
