// What do alert, confirm and prompt do in a page of our own? They are dismissed at once, and recorded.

const MAX_DIALOGS = 100; // between two looks; a page that asks on and on is in an endless loop
const nativeDialogs = { alert: undefined, confirm: false, prompt: null };
for (const type of Object.keys(nativeDialogs)) {
  const native = window[type].bind(window);
  window[type] = (...args) => {
    if (!window[KEY].guarded) return native(...args);
    if (activity.dialogs.length >= MAX_DIALOGS) throw new DOMException("Too many dialogs.", "AbortError");
    activity.dialogs.push(`${type}: ${String(args[0] ?? "").slice(0, 200)}`);
    return nativeDialogs[type];
  };
}
