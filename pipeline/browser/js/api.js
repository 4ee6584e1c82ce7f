// What may the driver ask of the page?

writeProperty(window, KEY, {
  enumerable: false,
  value: {
    guarded: false, // whether this is a page of our own, whose new tabs the driver opens
    acceptsDialogs: false, // how a page of our own answers when a script asks
    isQuiet,
    rest,
    acted,
    owedMs: () => now() - activity.owed,
    takeActivity,
    navigationFailed: () => {
      activity.navigating = false;
    },
    observe: async (options) => {
      const settled = await settle(options);
      if (settled && isUndisclosed(options)) return UNDISCLOSED;
      if (settled) await gatherRows(options);
      return settled ? withNatives(() => stringify({ settled, ...snapshot(options) })) : "";
    },
    digestDocument,
    shadowRoots,
    closedRoots,
    mySuspects,
    forgetSuspects,
    takeSuspects: () => withNatives(takeSuspects),
    disclose: (root) => withNatives(() => disclose(root)),
    digest: () => withNatives(digest),
    // With `unless`: a look as well, when the digest is another one and there are no frames that have to be asked first.
    quiet: async (options) => {
      const settled = await settle(options);
      if (!settled) return "";
      if (isUndisclosed(options)) return UNDISCLOSED;
      await gatherRows(options);
      return withNatives(() => {
        const told = { settled, digest: digest(), foreign: tellForeign(), ...takeAllActivity() };
        const isNew = "unless" in options && told.digest !== options.unless && told.foreign.length === 0;
        if (isNew) told.look = { settled, ...snapshot({ ...options, digest: false }) };
        return stringify(told);
      });
    },
    drawn,
    readHandlers,
    isHandled,
    changed,
    reveal,
    find: async (action, options) => {
      const row = isRow(action) ? await findRow(action, options) : undefined;
      return withNatives(() => stringify(find(action, options, row)));
    },
  },
});
listenToPage(); // from here on: what this script itself listens to is not the page's
