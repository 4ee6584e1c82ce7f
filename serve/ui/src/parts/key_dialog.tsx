/** Asks for the API key; it is kept until the tab is closed. */

import { useEffect, useRef, useState } from "preact/hooks";

import { apiKey, setApiKey } from "../service";

interface Props {
  message: string;
  onDone: () => void;
  onCancel: () => void;
}

export function KeyDialog({ message, onDone, onCancel }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [key, setKey] = useState("");
  const wasRejected = apiKey() !== "";
  useEffect(() => {
    dialog.current!.showModal();
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!key.trim()) return;
    setApiKey(key.trim());
    dialog.current!.close();
    onDone();
  };
  return (
    <dialog ref={dialog} class="key-dialog" aria-labelledby="key-title" onCancel={onCancel}>
      <form onSubmit={submit}>
        <h2 id="key-title">{wasRejected ? "The API key was not accepted" : "This service needs an API key"}</h2>
        <p class="muted">{message} It stays in this tab and is forgotten when the tab is closed.</p>
        <label>
          API key
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary" disabled={!key.trim()}>
          Continue
        </button>
      </form>
    </dialog>
  );
}
