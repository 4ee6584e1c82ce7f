/** What is shown while something loads, when there is nothing, and when it failed. */

import type { ComponentChildren } from "preact";

import { retryAll } from "../loading";
import type { RequestFailure } from "../service";

export function Loading({ what }: { what: string }) {
  return (
    <p class="note loading" role="status">
      <span class="spinner" aria-hidden="true" />
      Loading {what} …
    </p>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="note empty">
      <p class="note-title">{title}</p>
      {children}
    </div>
  );
}

export function Failure({ failure, children }: { failure: RequestFailure; children?: ComponentChildren }) {
  return (
    <div class="note failure" role="alert">
      <p class="note-title">{failure.message}</p>
      {failure.hint && <p>{failure.hint}</p>}
      <div class="note-actions">
        {failure.why !== "missing" && (
          <button type="button" onClick={retryAll}>
            Try again
          </button>
        )}
        {children}
      </div>
    </div>
  );
}
