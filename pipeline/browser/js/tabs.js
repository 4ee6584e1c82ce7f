// Where do new tabs and windows go?

// In a page of our own, new tabs are not opened but reported: the driver opens them, guarded from their first request.
// In a page that is not ours they are counted, so that the driver knows that one will come and how long to wait.
const hasFrame = (name, win = window.top) => {
  for (let i = 0; i < win.length; i++) {
    let own = "";
    try {
      own = win[i].name;
    } catch {
      continue; // another origin: its name cannot be read, nor can links of ours be meant for it
    }
    if (own === name || hasFrame(name, win[i])) return true;
  }
  return false;
};
const isNewTab = (target) => Boolean(target) && !/^_(self|top|parent)$/i.test(target) && !hasFrame(target);
const nativeOpen = window.open;
window.open = function (url, target, features) {
  const address = url && URL.canParse(url, document.baseURI) ? new URL(url, document.baseURI).href : "about:blank";
  if (target && !isNewTab(target)) return nativeOpen.call(window, url, target, features);
  if (!window[KEY].guarded) {
    activity.opened += 1;
    return nativeOpen.call(window, url, target, features);
  }
  if (/^https?:/.test(address)) activity.tabs.push(address);
  return null;
};
const targetOf = (element) =>
  element.getAttribute("target") ?? document.querySelector("base[target]")?.getAttribute("target") ?? "";
window.addEventListener("click", (event) => {
  const link = event.composedPath().find((node) => node instanceof Element && node.matches("a[href], area[href]"));
  if (link && !event.defaultPrevented && isNewTab(targetOf(link))) activity.opened += 1;
});
// A form that would post into a new tab is stopped here: no guard is in place yet when such a tab sends it.
const formGetter = (name) => Object.getOwnPropertyDescriptor(HTMLFormElement.prototype, name).get;
const [formMethod, formAction, formTarget] = ["method", "action", "target"].map(formGetter);
const leavesTab = (form, submitter) => {
  const target = submitter?.getAttribute("formtarget") || formTarget.call(form) || targetOf(document.documentElement);
  if (!window[KEY].guarded || !isNewTab(target)) return false;
  const method = submitter?.getAttribute("formmethod") || formMethod.call(form);
  activity.stopped.push([method.toUpperCase(), submitter?.getAttribute("formaction") || formAction.call(form)]);
  return true;
};
window.addEventListener("submit", (event) => {
  if (leavesTab(event.target, event.submitter)) event.preventDefault();
});
const nativeSubmit = HTMLFormElement.prototype.submit;
HTMLFormElement.prototype.submit = function () {
  if (!leavesTab(this, null)) nativeSubmit.call(this);
};
