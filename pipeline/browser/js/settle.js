// Has everything that an action or a load started come to an end?

const MAX_FINISHES = 50; // a page that starts its animations again and again never comes to rest
const BUSY_MS = 40; // a main thread that was away for longer was at work on something
// import() cannot be watched: where there are modules, wait for what they may import, longer where scripts come slowly.
const MODULE_QUIET_MS = 200;
const MAX_MODULE_QUIET_MS = 1000;
const moduleQuietMs = () => Math.min(Math.max(MODULE_QUIET_MS, 1.5 * activity.slowestCode), MAX_MODULE_QUIET_MS);

// Put finite animations to their end; says whether that calls for another look.
const finishAnimations = () => {
  let finished = false;
  for (const animation of document.getAnimations()) {
    const timing = animation.effect?.getComputedTiming();
    if (animation.playState === "running" && timing && Number.isFinite(timing.endTime)) {
      try {
        animation.finish();
        finished = true;
      } catch {
        // one with a playback rate of zero cannot be finished, and does not move either
      }
    }
  }
  if (finished) activity.finishes += 1;
  return finished && activity.finishes < MAX_FINISHES;
};

// Whether there is something to be used, or the page only says that it is being loaded (a splash screen, a progress bar).
const USABLE = "a[href], button, input:not([type=hidden]), select, textarea, summary, [role], [tabindex], [onclick]";
const isUsable = () => {
  for (const element of document.querySelectorAll(USABLE)) {
    if (element.checkVisibility(FULLY)) return true;
  }
  return false;
};
const hasModules = () => document.querySelector("script[type=module], link[rel~=modulepreload]") !== null;
const isQuiet = (quietMs, since) => {
  const time = now();
  if (time - Math.max(activity.lastLook, since) > BUSY_MS) activity.lastChange = time;
  activity.lastLook = time;
  for (const [request, start] of activity.inFlight) {
    if (time - start <= LONG_POLL_MS) continue;
    if (!isUsable()) break; // what such a page waits for it is about to show
    activity.inFlight.delete(request);
  }
  for (const [id, due] of activity.timers) {
    if (time > due + 250) activity.timers.delete(id); // the browser dropped it
  }
  const idle = time - Math.max(activity.lastChange, activity.since);
  const quiet =
    document.readyState === "complete" &&
    !activity.navigating &&
    activity.inFlight.size === 0 &&
    activity.timers.size === 0 &&
    !awaitsFrame(time, Math.max(activity.lastChange, activity.since)) &&
    idle >= quietMs &&
    (idle >= moduleQuietMs() || !hasModules());
  // Asked last, since it makes the browser bring all styles up to date.
  if (!quiet || !finishAnimations()) return quiet;
  activity.lastChange = now();
  return false;
};
const allQuiet = (quietMs, since) =>
  isQuiet(quietMs, since) && [...innerWaygraphs(window)].every((inner) => inner.isQuiet(quietMs, Infinity));

const normalise = () => {
  if (document.activeElement && document.activeElement !== document.body) document.activeElement.blur?.();
  scrollBack();
  if (window.scrollX || window.scrollY) window.scrollTo({ left: 0, top: 0, behavior: "instant" });
};

// Content that a page builds when it comes into view is there or not depending on how its first layout happened to
// run. Scrolling through once makes it be there always. Bounded, so that endless lists grow by a step at most.
const MAX_SCREENS = 20;
const MAX_SWEEPS = 2; // after each action or load: a list that grows when its end is seen grows once more
// Whether there was a frame: what watches for what comes into view is told in one. Pages that are not drawn have none; on
// a busy machine the next one may be long in coming.
const FRAME_MS = 1_000;
const frame = () =>
  Promise.race([new Promise((r) => nativeFrame(() => r(true))), new Promise((r) => nativeSetTimeout(() => r(false), FRAME_MS))]);
const scroller = () => {
  const page = document.scrollingElement;
  if (!page || page.scrollHeight > window.innerHeight) return page;
  let element = document.elementFromPoint(window.innerWidth / 2, window.innerHeight / 2);
  while (element && (element.scrollHeight <= element.clientHeight || getComputedStyle(element).overflowY === "visible")) {
    element = element.parentElement;
  }
  return element || page;
};
const sweep = async () => {
  activity.swept = activity.observed;
  activity.sweeps += 1;
  activity.owed = now();
  const box = scroller();
  const end = Math.min(box ? box.scrollHeight : 0, window.innerHeight * MAX_SCREENS);
  let isDrawn = true;
  for (let y = window.innerHeight; y < end && isDrawn; y += window.innerHeight) {
    box.scrollTo({ top: y, behavior: "instant" });
    isDrawn = (await frame()) && (await frame());
  }
  box?.scrollTo({ top: 0, left: 0, behavior: "instant" });
  await frame();
};

// What was owed has come; what still ticks is not ours to wait for.
const rest = () => {
  activity.navigating = false;
  activity.settled = true;
  setPollersAside();
};

const isStillLoading = () => isArriving() || (activity.inFlight.size > 0 && !isUsable());

// Nothing when a page is still being loaded at the cap, and the options say that there is time.
const settle = async (options) => {
  horizonMs = options.timerHorizonMs;
  const start = now();
  if (!options.hovering) withNatives(normalise);
  let capped = false;
  let waited = false;
  const quiet = () => withNatives(() => allQuiet(options.quietMs, start));
  const unseen = () => !options.hovering && activity.observed > activity.swept && activity.sweeps < MAX_SWEEPS;
  while (!capped) {
    const still = quiet();
    if (still && !unseen()) break;
    waited = true;
    if (still) await sweep();
    else await new Promise((resolve) => nativeSetTimeout(resolve, 8));
    capped = now() - start > options.capMs;
  }
  if (capped && options.patient && withNatives(isStillLoading)) return null;
  withNatives(() => {
    rest();
    for (const inner of innerWaygraphs(window)) inner.rest();
    for (const [link, target] of activity.retargeted.splice(0)) {
      if (target === null) link.removeAttribute("target");
      else link.setAttribute("target", target);
    }
    if (!options.hovering) normalise();
  });
  return { capped, waited, ms: now() - start };
};
