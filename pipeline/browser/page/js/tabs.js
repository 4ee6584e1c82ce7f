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
/**
 * What a script gets for a window that a guarded page does not open: it takes an address and draws nothing. Scripts open a
 * window without an address during the click, because it would be refused later, and set the address when they know it.
 * @param {Tab} tab
 */
const standInFor = (tab) => {
  const go = (/** @type {any} */ url) => {
    tab.url = new URL(String(url), document.baseURI).href;
    if (!activity.tabs.includes(tab)) activity.tabs.push(tab);
  };
  const address = { assign: go, replace: go, reload() {}, toString: () => tab.url };
  const location = { get: () => address, set: go, enumerable: true };
  const inner = document.implementation.createHTMLDocument("");
  const win = Object.assign(new EventTarget(), {
    closed: false, opener: window, document: inner, focus() {}, blur() {}, postMessage() {}, moveTo() {}, resizeTo() {}, print() {},
    close() {
      this.closed = true;
    },
  });
  writeProperty(address, "href", { get: () => tab.url, set: go, enumerable: true });
  return writeProperty(win, "location", location);
};
const nativeOpen = window.open;
/** @type {any} */ (window).open = function (
  /** @type {any} */ url, /** @type {any} */ target, /** @type {any} */ features
) {
  const address = url && URL.canParse(String(url), document.baseURI) ? new URL(url, document.baseURI).href : "about:blank";
  if (target && !isNewTab(target)) return nativeOpen.call(window, url, target, features);
  if (!window[KEY].guarded) {
    activity.opened += 1;
    return nativeOpen.call(window, url, target, features);
  }
  const tab = { url: address };
  activity.tabs.push(tab);
  return /noopener|noreferrer/i.test(String(features)) ? null : withNatives(() => standInFor(tab));
};
/**
 * The target of a link or form, also from <base>.
 * @param {Element} element
 * @returns {string}
 */
const targetOf = (element) =>
  element.getAttribute("target") ?? document.querySelector("base[target]")?.getAttribute("target") ?? "";
/**
 * Record a link that was clicked and targets a new tab, which a guarded page does not follow, or an empty frame.
 * @param {Event} event
 */
const onLinkClick = (event) =>
  withNatives(() => {
    /** @type {any} */
    const link = event.composedPath().find((node) => node instanceof Element && node.matches("a[href], area[href]"));
    if (!link || event.defaultPrevented) return;
    const target = targetOf(link);
    if (!isNewTab(target)) awaitEmptyFrame(target);
    else if (window[KEY].guarded && /^https?:/.test(link.href)) {
      event.preventDefault();
      activity.tabs.push({ url: link.href });
    } else activity.opened += 1;
  });
window.addEventListener("click", onLinkClick);
// The click on a link that is not in the document does not reach the window.
const nativeDispatch = EventTarget.prototype.dispatchEvent;
EventTarget.prototype.dispatchEvent = function dispatchEvent(/** @type {Event} */ event) {
  watchDetached(this);
  return apply(nativeDispatch, this, [event]);
};
const nativeClick = HTMLElement.prototype.click;
HTMLElement.prototype.click = function click() {
  watchDetached(this);
  apply(nativeClick, this, []);
};
/** @param {any} element */
const watchDetached = (element) => {
  if (element?.localName === "a" && !element.isConnected) apply(nativeAddListener, element, ["click", onLinkClick, { once: true }]);
};

// A form post into a new tab is stopped here: the tab would send it before a guard is attached.
/** @param {string} name @returns {() => any} */
const formGetter = (name) => /** @type {any} */ (Object.getOwnPropertyDescriptor(HTMLFormElement.prototype, name)).get;
const [formMethod, formAction, formTarget] = ["method", "action", "target"].map(formGetter);
/**
 * Whether a guarded page must not send a form, because its target is a new tab. Records the form; one that only reads is a
 * tab with the address that it asks for.
 * @param {HTMLFormElement} form
 * @param {HTMLElement | null} submitter
 * @param {boolean} isSent Whether the page sends it, and no script has taken it.
 */
const stopsForm = (form, submitter, isSent) => {
  const target = submitter?.getAttribute("formtarget") || formTarget.call(form) || targetOf(document.documentElement);
  if (!isNewTab(target)) return false;
  if (!window[KEY].guarded) {
    activity.opened += Number(isSent);
    return false;
  }
  const method = (submitter?.getAttribute("formmethod") || formMethod.call(form)).toUpperCase();
  const address = new URL(submitter?.getAttribute("formaction") || formAction.call(form), document.baseURI);
  if (method === "GET") {
    address.search = new URLSearchParams(/** @type {any} */ (new FormData(form, submitter))).toString();
    activity.tabs.push({ url: address.href });
  } else activity.stopped.push([method, address.href]);
  return true;
};
window.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (stopsForm(form, event.submitter, !event.defaultPrevented)) event.preventDefault();
  else if (!event.defaultPrevented) withNatives(() => awaitEmptyFrame(formTarget.call(form)));
});
const nativeSubmit = HTMLFormElement.prototype.submit;
HTMLFormElement.prototype.submit = function () {
  if (!stopsForm(this, null, true)) nativeSubmit.call(this);
};
