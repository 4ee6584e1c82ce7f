/** Text to copy, in several forms. */

import { useState } from "preact/hooks";

async function copyText(text: string, fallback: HTMLElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Not over plain HTTP on other hosts: select the text, so that one key press copies it.
    const selection = getSelection();
    if (fallback && selection) selection.selectAllChildren(fallback);
    return false;
  }
}

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      class="quiet"
      aria-label={label}
      onClick={() =>
        void copyText(text, null).then((copied) => {
          setDone(copied);
          setTimeout(() => setDone(false), 1500);
        })
      }
    >
      {done ? "Copied" : "Copy"}
    </button>
  );
}

export function Snippets({ forms }: { forms: Record<string, string> }) {
  const names = Object.keys(forms);
  const [chosen, setChosen] = useState(names[0]!);
  const [message, setMessage] = useState("");
  const text = forms[chosen] ?? "";
  const copy = async (event: MouseEvent) => {
    const pre = (event.currentTarget as HTMLElement).closest(".snippets")?.querySelector("pre") ?? null;
    setMessage((await copyText(text, pre)) ? "Copied" : "Selected: press Ctrl+C");
    setTimeout(() => setMessage(""), 2500);
  };
  return (
    <div class="snippets">
      <div class="snippets-bar">
        <div role="group" aria-label="Form of the request" class="segmented">
          {names.map((name) => (
            <button type="button" key={name} aria-pressed={name === chosen} onClick={() => setChosen(name)}>
              {name}
            </button>
          ))}
        </div>
        <span role="status" class="muted">
          {message}
        </span>
        <button type="button" onClick={(event) => void copy(event)}>
          Copy
        </button>
      </div>
      <pre tabIndex={0}>{text}</pre>
    </div>
  );
}
