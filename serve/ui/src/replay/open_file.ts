/** The replay that is shown, from a file that was dropped onto the page or chosen. It is kept in memory only. */

import { useEffect, useState } from "preact/hooks";

import { asFailure } from "../loading";
import { go, replayHref } from "../route";
import { RequestFailure } from "../service";
import { type Replay, readReplay, release, UnreadableReplay } from "./file";

export type OpenReplay =
  | { status: "none" }
  | { status: "loading"; name: string }
  | { status: "loaded"; name: string; replay: Replay }
  | { status: "failed"; name: string; failure: RequestFailure };

let current: OpenReplay = { status: "none" };
const listeners = new Set<() => void>();

function set(next: OpenReplay): void {
  if (current.status === "loaded") release(current.replay);
  current = next;
  for (const listener of listeners) listener();
}

export async function openReplay(file: File): Promise<void> {
  const { name } = file;
  set({ status: "loading", name });
  go(replayHref());
  try {
    set({ status: "loaded", name, replay: await readReplay(file) });
  } catch (error) {
    const failure =
      error instanceof UnreadableReplay ? new RequestFailure("missing", error.message, error.hint) : asFailure(error);
    set({ status: "failed", name, failure });
  }
}

export function closeReplay(): void {
  set({ status: "none" });
  go(replayHref());
}

export function useOpenReplay(): OpenReplay {
  const [held, setHeld] = useState(current);
  useEffect(() => {
    const follow = () => setHeld(current);
    follow();
    listeners.add(follow);
    return () => void listeners.delete(follow);
  }, []);
  return held;
}

/** Accept files that are dropped anywhere onto the page. Returns whether one is held over it. */
export function useFileDrop(): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    let depth = 0; // elements that the pointer entered and did not leave
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const listen: Record<string, (event: DragEvent) => void> = {
      dragenter: () => setOver(++depth > 0),
      dragleave: () => setOver(--depth > 0),
      dragover: () => undefined,
      drop: (event) => {
        setOver((depth = 0) > 0);
        const file = event.dataTransfer?.files[0];
        if (file) void openReplay(file);
      },
    };
    const controller = new AbortController();
    for (const [name, handler] of Object.entries(listen)) {
      addEventListener(
        name,
        (event) => {
          if (!hasFiles(event as DragEvent)) return;
          event.preventDefault(); // else the browser opens the file in place of the page
          handler(event as DragEvent);
        },
        { signal: controller.signal },
      );
    }
    return () => controller.abort();
  }, []);
  return isOver;
}
