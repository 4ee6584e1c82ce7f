// Replaces alert, confirm and prompt in a guarded page: they are answered at once and recorded.

const MAX_DIALOGS = 100; // between two snapshots; more are an endless loop
/** @type {Record<string, unknown>} */
const DISMISSED = { alert: undefined, confirm: false, prompt: null };
/** @type {Record<string, (message?: unknown, proposed?: unknown) => unknown>} */
const ACCEPTED = { alert: () => undefined, confirm: () => true, prompt: (_, proposed) => String(proposed ?? "") };
for (const type of Object.keys(DISMISSED)) {
  const native = /** @type {any} */ (window)[type].bind(window);
  /** @type {any} */ (window)[type] = (/** @type {unknown[]} */ ...args) => {
    if (!window[KEY].guarded) return native(...args);
    if (activity.dialogs.length >= MAX_DIALOGS) throw new DOMException("Too many dialogs.", "AbortError");
    activity.dialogs.push(`${type}: ${String(args[0] ?? "").slice(0, 200)}`);
    return window[KEY].acceptsDialogs ? ACCEPTED[type](...args) : DISMISSED[type];
  };
}
