// Intercepts new tabs and windows. In a guarded page they are not opened but reported: waygraph opens them, guarded from
// their first request. In other pages they are counted, and waygraph waits for as many tabs.

/**
 * Whether a window, or a frame inside it, has this name.
 * @param {string} name
 * @param {any} [win]
 * @returns {boolean}
 */
const hasFrame = (name, win = window.top) => {
  for (let i = 0; i < win.length; i++) {
    let frameName = "";
    try {
      frameName = win[i].name;
    } catch {
      continue; // another origin: its name cannot be read, nor can links of this document target it
    }
    if (frameName === name || hasFrame(name, win[i])) return true;
  }
  return false;
};
/** @param {string} target */
const isNewTab = (target) => Boolean(target) && !/^_(self|top|parent)$/i.test(target) && !hasFrame(target);
const nativeOpen = window.open;
window.open = function (url, target, features) {
  const address = url && URL.canParse(String(url), document.baseURI) ? new URL(url, document.baseURI).href : "about:blank";
  if (target && !isNewTab(target)) return nativeOpen.call(window, url, target, features);
  if (!window[KEY].guarded) {
    activity.opened += 1;
    return nativeOpen.call(window, url, target, features);
  }
  if (/^https?:/.test(address)) activity.tabs.push(address);
  return null;
};
/**
 * The target of a link or form, also from <base>.
 * @param {Element} element
 * @returns {string}
 */
const targetOf = (element) =>
  element.getAttribute("target") ?? document.querySelector("base[target]")?.getAttribute("target") ?? "";
window.addEventListener("click", (event) => {
  const link = event.composedPath().find((node) => node instanceof Element && node.matches("a[href], area[href]"));
  if (!link || event.defaultPrevented) return;
  const target = targetOf(/** @type {Element} */ (link));
  if (isNewTab(target)) activity.opened += 1;
  else if (target) withNatives(() => awaitEmptyFrame(target));
});

// A form post into a new tab is stopped here: the tab would send it before a guard is attached.
/** @param {string} name @returns {() => any} */
const formGetter = (name) => /** @type {any} */ (Object.getOwnPropertyDescriptor(HTMLFormElement.prototype, name)).get;
const [formMethod, formAction, formTarget] = ["method", "action", "target"].map(formGetter);
/**
 * Whether a guarded page must not send a form, because its target is a new tab; records the form.
 * @param {HTMLFormElement} form
 * @param {Element | null} submitter
 */
const stopsForm = (form, submitter) => {
  const target = submitter?.getAttribute("formtarget") || formTarget.call(form) || targetOf(document.documentElement);
  if (!window[KEY].guarded || !isNewTab(target)) return false;
  const method = submitter?.getAttribute("formmethod") || formMethod.call(form);
  activity.stopped.push([method.toUpperCase(), submitter?.getAttribute("formaction") || formAction.call(form)]);
  return true;
};
window.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (stopsForm(form, event.submitter)) event.preventDefault();
  else if (!event.defaultPrevented) withNatives(() => awaitEmptyFrame(formTarget.call(form)));
});
const nativeSubmit = HTMLFormElement.prototype.submit;
HTMLFormElement.prototype.submit = function () {
  if (!stopsForm(this, null)) nativeSubmit.call(this);
};
