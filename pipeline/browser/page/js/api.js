// Provides `window["\0waygraph"]`: the functions that waygraph calls, and those that this script calls in other
// windows of the page.

/**
 * Wait until the page has settled, then return a snapshot as JSON, or a text if it has not settled, see `settle`.
 * @param {SnapshotOptions} options
 */
const observe = async (options) => {
  const settled = await settle(options);
  if (typeof settled === "string") return settled;
  if (isUndisclosed(options)) return UNDISCLOSED;
  if (!options.outline) await gatherRows(options);
  await gatherTools();
  return withNatives(() => stringify({ settled, ...snapshot(options) }));
};
/**
 * Wait until the page has settled, then return its digest as JSON, or a text if it has not settled. With `unlessDigest`,
 * the result includes a snapshot if the digest differs or a script moved the focus (style sheets may show something there), unless the page has cross-origin frames: those must be called first.
 * @param {SnapshotOptions} options
 */
const settleAndDigest = async (options) => {
  const settled = await settle(options);
  if (typeof settled === "string") return settled;
  if (isUndisclosed(options)) return UNDISCLOSED;
  await gatherRows(options);
  await gatherTools();
  return withNatives(() => {
    const result = { settled, digest: digest(), crossOrigin: reportCrossOrigin(), ...takeAllActivity() };
    const hasChanged = "unlessDigest" in options && (activity.movedFocus || result.digest !== options.unlessDigest);
    if (!hasChanged || result.crossOrigin.length > 0) return stringify(result);
    return stringify({ ...result, snapshot: { settled, ...snapshot({ ...options, digest: false }) } });
  });
};
/**
 * Find a recorded element, see `find`, and return the result as JSON.
 * @param {RecordedAction} action
 * @param {SnapshotOptions} options
 */
const findAction = async (action, options) => {
  const row = withNatives(() => isRow(action)) ? await findRow(action, options) : undefined;
  const found = withNatives(() => find(action, options, row));
  if ("isScrolled" in found) {
    await nextFrame(); // what depends on the position of the box is drawn, and changed by scripts, in frames
    await nextFrame();
  }
  return withNatives(() => stringify(found));
};

writeProperty(window, KEY, {
  enumerable: false,
  value: {
    guarded: false, // whether the page belongs to waygraph, which opens its new tabs
    knowsListeners: false, // whether this script runs before all others of each document
    acceptsDialogs: false, // how a guarded page answers dialogs
    isApart: false, // whether this script runs in an isolated world, see evaluate.py

    // Called by waygraph.
    observe,
    settle: settleAndDigest,
    digest: async () => {
      await gatherTools();
      return withNatives(digest);
    },
    waitUntilDrawn,
    markup: () => withNatives(markup),
    find: findAction,
    readOn,
    scroll: scrollBox,
    reveal,
    noteAction,
    dispatchChange,
    refocus: () => withNatives(refocus),
    refill: () => withNatives(() => stringify(refill())),
    previousChoice: () => withNatives(previousChoice),
    pointOutside: () => withNatives(() => stringify(pointOutside())),
    hasOtherHandlers: () => withNatives(hasOtherHandlers),
    tools: async () => {
      await gatherTools();
      return withNatives(() => stringify(pageTools()));
    },
    fillTool: async (
      /** @type {RecordedAction} */ action, /** @type {Record<string, any>} */ values, /** @type {ExpectedForm | undefined} */ expected,
    ) => stringify(await fillTool(action, values, expected)),
    resetTool: (/** @type {RecordedAction} */ action) => withNatives(() => resetTool(action)),
    submitTool: () => withNatives(() => stringify(submitTool())),
    restoreStorage: () => withNatives(restoreStorage),
    takeSuspects: () => withNatives(takeSuspects),
    disclose: (/** @type {ShadowRoot} */ root) => withNatives(() => disclose(root)),
    navigationFailed: (/** @type {string} */ url) => withNatives(() => endNavigation(url)),

    // Called by this script in other windows.
    isQuiet,
    hasModules,
    markSettled,
    takeActivity,
    ownMsSinceConsequence: () => now() - activity.lastConsequence,
    digestDocument,
    shadowRoots,
    closedRoots,
    knownInternals,
    ownSuspects,
    forgetSuspects,
    readHandlers,
    isHandled,
    mayRegister,
    isRegistering,
    isRestless,
  },
});
interceptListeners(); // last: listeners that this script has added so far are not the page's
