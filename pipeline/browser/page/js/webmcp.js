// Provides `gatherTools`: the tools that a page declares to its browser (WebMCP) or to a polyfill. No tool is called.

const MAX_TOOLS = 200; // of one page; further ones are counted
const MAX_TOOL_TEXT = 2_000; // characters of a description
const MAX_TOOL_NAME = 128; // the limit of WebMCP
const MAX_SCHEMA = 65_536; // characters of one schema
const MAX_SCHEMA_DEPTH = 64;
const MAX_REGISTRATIONS = 5; // of one name since an action began; a page that goes on registers in a loop
const MIN_CHAIN = 3; // timers, each set by the one before, that count as an interval
const TOOLS_MS = 1_000; // a polyfill that takes longer has no tools
const ANY_SCHEMA = '{"type":"object"}'; // stands for a schema that is missing, too large, or no object

const modelContext = /** @type {any} */ (window).ModelContext?.prototype;
const contextGetter = readProperty(Document.prototype, "modelContext")?.get;
const nativeGetTools = modelContext?.getTools;
const hasWebMcp = isNative(contextGetter) && isNative(nativeGetTools);

/** Number of registrations since an action began, by name of the tool. @type {Map<string, [since: number, count: number]>} */
const registrations = lasting(new Map());
/** Names that are registered again and again: it is chance whether the document has them. @type {Set<string>} */
const restlessNames = lasting(new Set());
/** Registrations of this document that the browser has not answered: it does not list their tools yet. @type {Set<any>} */
const pendingRegistrations = lasting(new Set());
const isRegistering = () => pendingRegistrations.size > 0;
/** @param {string} name */
const noteRegistration = (name) => {
  const [since, count] = registrations.get(name) ?? [0, 0];
  const isRecurring = activity.isInterval || activity.nesting >= MIN_CHAIN;
  const again = since === activity.actionStart || isRecurring ? count + 1 : 1;
  if (again > (isRecurring ? 1 : MAX_REGISTRATIONS)) restlessNames.add(name);
  if (registrations.size < MAX_KNOWN || count > 0) registrations.set(name, [activity.actionStart, again]);
};
if (hasWebMcp && isNative(modelContext.registerTool)) {
  const nativeRegister = modelContext.registerTool;
  modelContext.registerTool = function registerTool(/** @type {any} */ tool) {
    noteRegistration(tool !== null && typeof tool === "object" ? readProperty(tool, "name")?.value : "");
    const registered = apply(nativeRegister, this, /** @type {any} */ (arguments));
    withNatives(() => {
      if (typeof registered?.then !== "function") return;
      pendingRegistrations.add(registered);
      const end = () => pendingRegistrations.delete(registered);
      registered.then(end, end);
    });
    return registered;
  };
}
/** Whether scripts of this document may have registered tools with the browser. */
const mayRegister = () => !window[KEY].knowsListeners || registrations.size > 0;
/** @param {string} name */
const isRestless = (name) => restlessNames.has(name);

/**
 * The documents of this page that can be read from here, with the XPaths of the frames that lead to them.
 * @param {any} win
 * @param {string[]} path
 * @returns {Generator<[any, string[]]>}
 */
const documentsOf = function* (win, path = []) {
  yield [win.document, path];
  for (const frame of framesOf(win)) {
    const inner = /** @type {any} */ (documentIn(frame)?.defaultView);
    if (inner) yield* documentsOf(inner, [...path, fullPathOf(frame)]);
  }
};
/** The full XPath of an element, through shadow roots. @param {any} node @returns {string} */
const fullPathOf = (node) => {
  const element = unclobbered(node);
  const root = element.getRootNode();
  return `${root.host ? `${fullPathOf(root.host)} >>> ` : ""}${pathFromRoot(element)}`;
};

/** A tool that a document declares, as it was read. */
/**
 * @typedef {{ win: any, source: "script" | "polyfill", name: string, title: string, description: string, schema: string,
 *   isCut: boolean, hints: any }} Declared
 */

/** Declared tools of this document and of the frames of its origin, as of the last call of `gatherTools`. @type {Declared[]} */
let declaredTools = [];
/** Number of tools that these documents register again and again. */
let restlessTools = 0;

/** Stands for what a polyfill has not answered in time. @type {any[]} */
const LATE = [];
/** Polyfills that were late once: they are not asked again. @type {WeakSet<any>} */
const lateProviders = lasting(new WeakSet());
/**
 * Result of a call, null if it fails, or `LATE`.
 * @param {() => any} call
 * @returns {Promise<any>}
 */
const resultOf = (call) =>
  new Promise((resolve) => {
    nativeSetTimeout(resolve, TOOLS_MS, LATE);
    (async () => {
      try {
        resolve(await call());
      } catch {
        resolve(null); // not allowed in this frame, or the page's own code throws
      }
    })();
  });
/**
 * What provides declared tools: the browser's object, and those of polyfills.
 * @param {any[]} windows
 * @returns {[source: Declared["source"], win: any, provider: any, getTools: () => any][]}
 */
const toolProviders = (windows) => {
  /** @type {ReturnType<typeof toolProviders>} */
  const providers = [];
  const native = hasWebMcp ? apply(/** @type {any} */ (contextGetter), document, []) : undefined;
  const declares = (/** @type {any} */ win) =>
    (win[KEY]?.mayRegister() ?? true) || inAllRoots(win.document, "form[toolname]").length > 0;
  // The browser's own lists the tools of all frames of the origin.
  if (native && windows.some(declares)) providers.push(["script", window, native, () => apply(nativeGetTools, native, [])]);
  for (const win of windows) {
    const own = hasWebMcp ? apply(/** @type {any} */ (contextGetter), win.document, []) : undefined;
    const found = new Set([win.document.modelContext, win.navigator.modelContext]);
    found.delete(own);
    for (const polyfill of found) {
      if (lateProviders.has(polyfill) || typeof polyfill?.getTools !== "function") continue;
      providers.push(["polyfill", win, polyfill, () => polyfill.getTools()]);
    }
  }
  return providers;
};
/**
 * JSON of a schema, and whether it stands for another one that is no object, or too large.
 * @param {any} given
 * @returns {[schema: string, isCut: boolean]}
 */
const schemaText = (given) => {
  if (given === undefined || given === null) return [ANY_SCHEMA, false];
  try {
    const value = typeof given === "string" ? JSON.parse(given) : given;
    // Only half characters are escaped by a number above d7ff.
    const text = stringify(value)?.replace(/(?<=(?<!\\)(?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, "\ufffd");
    if (text?.startsWith("{") && text.length <= MAX_SCHEMA && nesting(text) <= MAX_SCHEMA_DEPTH) return [text, false];
  } catch {
    // no JSON
  }
  return [ANY_SCHEMA, true];
};
/**
 * The browser's schema of a form as JSON Schema means it: it writes regular expressions under `format` and without the anchors
 * that HTML implies, and a list without options as a choice among none.
 * @param {string} text
 */
const mendedFormSchema = (text) => {
  const schema = JSON.parse(text);
  for (const property of Object.values(schema.properties ?? {})) {
    for (const one of [property, property.items].filter((each) => each !== null && typeof each === "object")) {
      if (one.pattern) one.pattern = `^(?:${one.pattern})$`;
      if (one.format?.startsWith("^")) [one.pattern, one.format] = [one.format, undefined];
      if (one.anyOf?.length === 0) one.anyOf = one.enum = undefined;
    }
  }
  return /** @type {string} */ (stringify(schema));
};
/** How deeply JSON is nested. @param {string} text */
const nesting = (text) => {
  let depth = 0;
  let deepest = 0;
  for (const [sign] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[{]|[\]}]/g)) {
    if (sign === "[" || sign === "{") deepest = Math.max(deepest, (depth += 1));
    else if (sign === "]" || sign === "}") depth -= 1;
  }
  return deepest;
};
/** @param {unknown} text @param {number} [limit] */
const toolText = (text, limit) => squeeze(typeof text === "string" ? text.slice(0, 4 * MAX_TOOL_TEXT) : "", limit);
/**
 * @param {any} tool
 * @param {Declared["source"]} source
 * @param {any} win
 * @returns {Declared}
 */
const readTool = (tool, source, win) => {
  const [schema, isCut] = schemaText(tool.inputSchema);
  const hint = (/** @type {string} */ name) => tool.annotations?.[`${name}Hint`] === true;
  return {
    win: source === "script" ? tool.window : win, source, name: toolText(tool.name, MAX_TOOL_NAME), title: toolText(tool.title),
    description: toolText(tool.description, MAX_TOOL_TEXT), schema, isCut,
    hints: { readOnly: hint("readOnly"), untrusted: hint("untrustedContent"), consequential: hint("consequential") },
  };
};
/** Forms whose tools the browser did not list after frames were drawn. @type {WeakSet<Element>} */
const refusedForms = lasting(new WeakSet());
/**
 * Forms with the attributes of a tool that was not found.
 * @param {any[]} windows
 * @param {Declared[]} found
 */
const unlistedForms = (windows, found) =>
  windows.flatMap((win) => inAllRoots(win.document, "form[toolname][tooldescription]")).filter((form) => {
    const name = Element.prototype.getAttribute.call(form, "toolname");
    return !refusedForms.has(form) && !found.some((tool) => tool.name === name && tool.win.document === unclobbered(form).ownerDocument);
  });
/**
 * Read the tools that this document and the frames of its origin declare. A polyfill that also lists the browser's tools
 * adds none.
 */
const gatherTools = async () => {
  const windows = withNatives(() => Array.from(documentsOf(window), ([doc]) => doc.defaultView));
  // A busy browser answers late, and each frame has a channel of its own.
  const end = now() + TOOLS_MS;
  const isAwaited = () => withNatives(() => windows.some((win) => win[KEY]?.isRegistering()));
  while (isAwaited() && now() < end) await new Promise((done) => nativeSetTimeout(done, POLL_MS));
  await readDeclared(windows);
  const late = hasWebMcp ? withNatives(() => unlistedForms(windows, declaredTools)) : [];
  if (late.length === 0) return;
  await nextFrame(); // the browser registers a form when it is drawn next
  await nextFrame();
  await readDeclared(windows);
  withNatives(() => unlistedForms(windows, declaredTools).forEach((form) => refusedForms.add(form)));
};
/** @param {any[]} windows */
const readDeclared = async (windows) => {
  /** @type {Declared[]} */
  const found = [];
  let restless = 0;
  const providers = withNatives(() => toolProviders(windows));
  // All are asked at once: they share the time.
  const asked = withNatives(() => providers.map(([, , , getTools]) => resultOf(getTools)));
  for (let i = 0; i < providers.length; i++) {
    const [source, win, provider] = providers[i];
    const given = await asked[i];
    withNatives(() => {
      if (given === LATE && source === "polyfill") lateProviders.add(provider);
      for (let j = 0; j < Math.min(given?.length ?? 0, 2 * MAX_TOOLS); j++) {
        try {
          const tool = readTool(given[j], source, win);
          if (!tool.name || found.some((other) => other.name === tool.name && other.win === tool.win)) continue;
          if (source === "script" && tool.win[KEY]?.isRestless(tool.name)) restless += 1;
          else found.push(tool);
        } catch {
          // what the page's own code returns may be anything
        }
      }
    });
  }
  declaredTools = found;
  restlessTools = restless;
};
/** What tells apart two contents of the document that differ only in the tools that scripts registered. */
const toolsState = () =>
  declaredTools.map(({ name, description, schema }) => `${name}\n${description}\n${schema}`).sort().join("\n");
