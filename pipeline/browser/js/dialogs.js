// What do alert, confirm and prompt do in a page of our own? They are answered at once, and recorded.

const MAX_DIALOGS = 100; // between two looks; a page that asks on and on is in an endless loop
const dismissed = { alert: undefined, confirm: false, prompt: null };
const accepted = { alert: () => undefined, confirm: () => true, prompt: (_, proposed) => String(proposed ?? "") };
for (const type of Object.keys(dismissed)) {
  const native = window[type].bind(window);
  window[type] = (...args) => {
    if (!window[KEY].guarded) return native(...args);
    if (activity.dialogs.length >= MAX_DIALOGS) throw new DOMException("Too many dialogs.", "AbortError");
    activity.dialogs.push(`${type}: ${String(args[0] ?? "").slice(0, 200)}`);
    return window[KEY].acceptsDialogs ? accepted[type](...args) : dismissed[type];
  };
}
