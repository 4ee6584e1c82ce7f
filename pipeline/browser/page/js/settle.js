// Provides `settle`: waits until all consequences of an action or a load have come to an end.

const MAX_FINISHES = 50; // a page that restarts its animations again and again never settles
const BUSY_MS = 40; // a main thread that was blocked for longer did some work
// A module that has arrived is compiled, possibly on another thread, before it asks for others.
const MODULE_QUIET_MS = 200;
// Scripts cannot observe import(), only callers can. Where a caller cannot, wait longer where scripts load slowly.
const MAX_MODULE_QUIET_MS = 1000;
const UNCONFIRMED_CODE = "code";
const DROPPED_TIMER_MS = 250; // a timer that is overdue for longer was dropped by the browser
const POLL_MS = 8;
const LOOK_MS = 100; // between two looks for signs that the page waits
const APART_QUIET_MS = 500; // in an isolated world requests and timers of the page are unknown
const moduleQuietMs = () => Math.min(Math.max(MODULE_QUIET_MS, 1.5 * activity.slowestCode), MAX_MODULE_QUIET_MS);

/** Finish all finite animations; returns whether the page must be checked again after that. */
const finishAnimations = () => {
  let finished = false;
  for (const animation of document.getAnimations()) {
    const timing = animation.effect?.getComputedTiming();
    if (animation.playState === "running" && timing && Number.isFinite(timing.endTime)) {
      try {
        animation.finish();
        finished = true;
      } catch {
        // an animation with a playback rate of zero cannot be finished, and does not move
      }
    }
  }
  if (finished) activity.finishes += 1;
  return finished && activity.finishes < MAX_FINISHES;
};

const USABLE = "a[href], button, input:not([type=hidden]), select, textarea, summary, [role], [tabindex], [onclick]";
/** Whether a person could use the page; not if it only shows that it is loading (a splash screen, a progress bar). */
const isUsable = () => {
  for (const element of document.querySelectorAll(USABLE)) {
    if (element.checkVisibility(VISIBLE)) return true;
  }
  return false;
};
const hasModules = () => document.querySelector("script[type=module], link[rel~=modulepreload]") !== null;
/**
 * Whether modules have had the time to import others.
 * @param {number} time
 * @param {number} idle Time since the last change.
 * @param {SnapshotOptions["code"]} code
 */
const haveModulesRun = (time, idle, code) =>
  (code ? time - activity.codeArrived >= MODULE_QUIET_MS : idle >= moduleQuietMs()) || !hasModules();
/**
 * Whether this document has been quiet for `quietMs`.
 * @param {number} quietMs
 * @param {number} since Start of the observation; the time before it does not count as blocked.
 * @param {SnapshotOptions["code"]} code
 * @returns {boolean}
 */
const isQuiet = (quietMs, since, code) => {
  const time = now();
  if (time - Math.max(activity.lastCheck, since) > BUSY_MS) activity.lastChange = time;
  activity.lastCheck = time;
  for (const [request, start] of activity.inFlight) {
    if (/** @type {any} */ (request).localName === "iframe" && !(/** @type {any} */ (request).isConnected)) {
      activity.inFlight.delete(request); // it never loads
      continue;
    }
    if (time - start <= LONG_POLL_MS) continue;
    if (!isUsable() || activity.isWaiting) break; // the page needs the response
    activity.inFlight.delete(request);
    activity.polls.add(request);
  }
  for (const [id, due] of activity.timers) {
    if (time > due + DROPPED_TIMER_MS) activity.timers.delete(id);
  }
  const idle = time - Math.max(activity.lastChange, activity.actionStart);
  const quiet =
    document.readyState === "complete" &&
    !activity.navigating &&
    activity.inFlight.size === 0 &&
    activity.timers.size === 0 &&
    !awaitsFrame(time, Math.max(activity.lastChange, activity.actionStart)) &&
    idle >= quietMs &&
    haveModulesRun(time, idle, code);
  // Animations are checked last, because that makes the browser update all styles.
  if (!quiet || !finishAnimations()) return quiet;
  activity.lastChange = now();
  return false;
};
/**
 * Whether this document and its frames of the same origin are quiet.
 * @param {SnapshotOptions} options
 * @param {number} since
 */
const allQuiet = ({ quietMs, code }, since) =>
  isQuiet(window[KEY].isApart ? APART_QUIET_MS : quietMs, since, code) &&
  [...innerScripts(window)].every((inner) => inner.isQuiet(quietMs, Infinity, code));
/**
 * Whether only the caller can tell whether all code has arrived, and wants to.
 * @param {SnapshotOptions} options
 */
const isCodeUnconfirmed = ({ code }) =>
  code === "report" && (hasModules() || [...innerScripts(window)].some((inner) => inner.hasModules()));

/**
 * Remove the focus and scroll everything back, so that snapshots do not depend on either. The focus stays where a script
 * moved it during an action: palettes and lists of suggestions close without it.
 */
const resetView = () => {
  noteFocus();
  const { activeElement } = document;
  if (activeElement && activeElement !== document.body && !activity.movedFocus) /** @type {any} */ (activeElement).blur?.();
  scrollBack();
  if (window.scrollX || window.scrollY) window.scrollTo({ left: 0, top: 0, behavior: "instant" });
};

// Content that a page builds when it comes into view exists or not, depending on the timing of the first layout. Scrolling
// through the page once makes it always exist. The limits let endless lists grow by a step at most.
const MAX_SCREENS = 20;
const MAX_SWEEPS = 2; // after each action or load: a list that grows when its end is visible grows once more
const FRAME_MS = 1_000;
/**
 * Wait for an animation frame, in which intersection observers run; resolves to whether there was one. Pages that are not
 * drawn have none, and on a busy machine the next one may come late.
 * @returns {Promise<boolean>}
 */
const nextFrame = () =>
  Promise.race([
    new Promise((r) => nativeRequestFrame(() => r(true))),
    new Promise((r) => nativeSetTimeout(() => r(false), FRAME_MS)),
  ]);
/**
 * Wait until the intersection observers of this document know the present position; resolves to whether they do. The browser
 * calls all of them in one task, some time after a frame, and those that were made last come last.
 * @returns {Promise<boolean>}
 */
const observersHaveRun = async () => {
  if (!(await nextFrame())) return false;
  const { documentElement } = document;
  if (!documentElement) return true; // a script has removed it
  /** @type {IntersectionObserver | undefined} */
  let observer;
  const haveRun = await Promise.race([
    new Promise((r) => {
      observer = new NativeIntersectionObserver(() => r(true));
      observer.observe(documentElement);
    }),
    new Promise((r) => nativeSetTimeout(() => r(false), FRAME_MS)),
  ]);
  observer?.disconnect();
  return haveRun;
};
/** The element that scrolls the page: the document, or a box that fills the window. @returns {any} */
const mainScroller = () => {
  const page = document.scrollingElement;
  if (!page || page.scrollHeight > window.innerHeight) return page;
  let element = document.elementFromPoint(window.innerWidth / 2, window.innerHeight / 2);
  while (element && (element.scrollHeight <= element.clientHeight || getComputedStyle(element).overflowY === "visible")) {
    element = parentOf(element);
  }
  return element || page;
};
/** Tell the network guard, where there is one, that what the page sends from now on is an effect of scrolling. */
const noteScroll = () =>
  Promise.race([
    /** @type {any} */ (window)[Symbol.for("waygraph.guard")]?.noteScroll(),
    new Promise((r) => nativeSetTimeout(r, FRAME_MS)),
  ]);
const scrollThrough = async () => {
  activity.observedAtSweep = activity.observed;
  activity.sweeps += 1;
  activity.lastConsequence = now();
  await noteScroll();
  const box = mainScroller();
  const end = Math.min(box ? box.scrollHeight : 0, window.innerHeight * MAX_SCREENS);
  let isDrawn = true;
  for (let y = window.innerHeight; y < end && isDrawn; y += window.innerHeight) {
    box.scrollTo({ top: y, behavior: "instant" });
    isDrawn = (await nextFrame()) && (await observersHaveRun());
  }
  box?.scrollTo({ top: 0, left: 0, behavior: "instant" });
  await observersHaveRun();
};

/** Record that the document has settled: timers that still run are not consequences of the action. */
const markSettled = () => {
  activity.navigating = false;
  activity.settled = true;
  clearPollers();
};

const isLoading = () => isReceiving() || (activity.inFlight.size > 0 && !isUsable());

/**
 * Wait until the page has settled.
 * @param {SnapshotOptions} options
 * @returns {Promise<Settled | string>} A text is returned to the caller instead of a result. Empty: the page is still
 * loading at the cap, and the options allow an extension. `UNCONFIRMED_CODE`: see `isCodeUnconfirmed`.
 */
const settle = async (options) => {
  horizonMs = options.timerHorizonMs;
  /** @type {Set<string>} */
  const signs = lasting(new Set());
  let looked = -Infinity;
  // A page that shows that it waits goes on until it shows something else, with the timers that it needs for that.
  const shownWaiting = () => {
    if (now() - looked < LOOK_MS) return activity.isWaiting;
    looked = now();
    const found = withNatives(() => signsOfWaiting(options, start + options.capMs));
    for (const sign of found) signs.add(sign);
    activity.isWaiting = found.length > 0;
    if (activity.isWaiting) withNatives(() => startLaterTimers(start + options.capMs));
    return activity.isWaiting;
  };
  const start = now();
  // Agents scroll and focus on purpose.
  const keepsView = options.hovering || options.outline === true;
  if (options.outline) scrolledForAction.length = 0;
  if (!keepsView) withNatives(resetView);
  let capped = false;
  let waited = false;
  // Styles that depend on what was laid out (scroll-driven ones, container queries) apply a frame later, which comes late on
  // a busy machine.
  let isDrawn = activity.settled || document.visibilityState === "hidden";
  const draw = async () => {
    if (await nextFrame()) await nextFrame();
    isDrawn = true;
  };
  if (!isDrawn) void draw();
  const isWholePageQuiet = () => withNatives(() => allQuiet(options, start)) && isDrawn;
  const needsSweep = () =>
    !options.hovering && !(options.outline && window.scrollY) &&
    activity.observed > activity.observedAtSweep && activity.sweeps < MAX_SWEEPS;
  // An interval that is overdue because the main thread was blocked runs before the timer of the first wait.
  const mayBeOverdue = () => activity.hasIntervals && !waited;
  while (!capped) {
    const quiet = isWholePageQuiet() && !mayBeOverdue();
    const isReady = quiet && !shownWaiting();
    if (isReady && !needsSweep()) break;
    waited = true;
    if (isReady) await scrollThrough();
    else await new Promise((done) => nativeSetTimeout(done, POLL_MS));
    capped = now() - start > options.capMs;
  }
  const waiting = capped && activity.isWaiting ? withNatives(() => signsOfWaiting(options, start + options.capMs)) : [];
  const ended = withNatives(() => [...signs].filter((sign) => !waiting.includes(sign)));
  activity.isWaiting = false;
  if (capped && options.mayExtend && withNatives(isLoading)) return "";
  if ((!capped || waiting.length) && withNatives(() => isCodeUnconfirmed(options))) return UNCONFIRMED_CODE;
  for (const sign of waiting) activity.lastingSigns.add(sign);
  withNatives(() => {
    markSettled();
    for (const inner of innerScripts(window)) inner.markSettled();
    for (const [link, target] of activity.retargeted.splice(0)) {
      if (target === null) link.removeAttribute("target");
      else link.setAttribute("target", target);
    }
    if (!keepsView) resetView();
  });
  return { capped, waited, waiting, ended, ms: now() - start };
};
