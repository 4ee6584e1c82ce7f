// Provides copies of the browser's functions, made before a page's scripts can replace them, and `withNatives`.

const nativeSetTimeout = window.setTimeout.bind(window);
const nativeClearTimeout = window.clearTimeout.bind(window);
const nativeSetInterval = window.setInterval.bind(window);
const nativeClearInterval = window.clearInterval.bind(window);
const nativeRequestFrame = window.requestAnimationFrame.bind(window);
const nativeStringify = JSON.stringify;
const now = performance.now.bind(performance);
const navigationEntries = performance.getEntriesByType.bind(performance, "navigation");

const readProperty = Object.getOwnPropertyDescriptor;
const writeProperty = Object.defineProperty;
const apply = Reflect.apply;

const functionSource = Function.prototype.toString;
/**
 * Whether a function is the browser's own. One that a script bound or proxied has no name in its source.
 * @param {any} given
 */
const isNative = (given) =>
  typeof given === "function" && apply(functionSource, given, []) === `function ${given.name}() { [native code] }`;

/** Shared functions that this script calls while it observes a page. @type {[any, string | symbol, PropertyDescriptor][]} */
const BORROWED = [];
/** @type {[any, string][]} */
const BORROWED_NAMES = [
  [Array.prototype, "concat entries every filter find findIndex flatMap forEach includes indexOf join map pop push reduce reverse shift slice some sort splice unshift values"],
  [Array, "from isArray"],
  [Map.prototype, "delete entries get has keys set values"],
  [Set.prototype, "add delete has values"],
  [WeakMap.prototype, "get has set"],
  [WeakSet.prototype, "add has"],
  [String.prototype, "charCodeAt endsWith includes indexOf match matchAll normalize padStart replace slice split startsWith toLowerCase toUpperCase toWellFormed trim"],
  [RegExp.prototype, "exec test"],
  [Object, "assign defineProperty entries getOwnPropertyDescriptor getPrototypeOf hasOwn keys"],
  [Math, "ceil floor imul max min round"],
  [Number, "isFinite"],
  [Promise, "race"],
  [Promise.prototype, "then"],
  [URL, "canParse"],
  [URLSearchParams.prototype, "append toString"],
  [CSS, "escape"],
  [Element.prototype, "checkVisibility closest getAttribute getAttributeNames getBoundingClientRect getClientRects getHTML hasAttribute matches querySelector querySelectorAll removeAttribute scrollIntoView scrollTo setAttribute"],
  [Document.prototype, "elementFromPoint getAnimations getElementById querySelector querySelectorAll"],
  [DocumentFragment.prototype, "getElementById querySelector querySelectorAll"],
  [HTMLSlotElement.prototype, "assignedNodes"],
  [Node.prototype, "cloneNode contains getRootNode"],
];
/** @param {any} holder @param {string | symbol} name */
const borrow = (holder, name) => {
  const descriptor = holder && readProperty(holder, name);
  if (descriptor) BORROWED[BORROWED.length] = [holder, name, descriptor];
};
for (const [holder, names] of BORROWED_NAMES) for (const name of names.split(" ")) borrow(holder, name);
for (const holder of [Array, Map, Set]) borrow(holder.prototype, Symbol.iterator);
const NAMESPACES = ["CSS", "JSON", "Math", "Reflect", "Undefined"].map((name) => `[object ${name}]`);
/**
 * Whether everything that this script takes from the page is the browser's own, as it is before the page's scripts run.
 * Promises and observers that a library wraps (zone.js) work like the browser's.
 * @param {any[]} captured
 */
const areNative = (captured) => {
  for (let i = 0; i < captured.length; i++) {
    if (!isNative(captured[i]) && !NAMESPACES.includes(apply(Object.prototype.toString, captured[i], []))) return false;
  }
  for (let i = 0; i < BORROWED.length; i++) {
    const [holder, , { value }] = BORROWED[i];
    if (holder !== Promise && holder !== Promise.prototype && !isNative(value)) return false;
  }
  return true;
};

/**
 * Run `work`, which must be synchronous, with the browser's own functions in place, then restore those of the page.
 * @template T
 * @param {() => T} work
 * @returns {T}
 */
const withNatives = (work) => {
  /** @type {[any, string | symbol, PropertyDescriptor | undefined][]} */
  const replaced = [];
  for (let i = 0; i < BORROWED.length; i++) {
    const entry = BORROWED[i];
    if (entry[0][entry[1]] === entry[2].value) continue;
    const descriptor = readProperty(entry[0], entry[1]);
    if (descriptor && !descriptor.configurable) continue;
    replaced[replaced.length] = [entry[0], entry[1], descriptor];
    writeProperty(entry[0], entry[1], entry[2]);
  }
  try {
    return work();
  } finally {
    for (let i = 0; i < replaced.length; i++) {
      const entry = replaced[i];
      if (entry[2]) writeProperty(entry[0], entry[1], entry[2]);
      else delete entry[0][entry[1]];
    }
  }
};

/**
 * Give a map or set the browser's own methods as properties, so that later changes of its prototype do not affect it.
 * @template T
 * @param {T} collection
 * @returns {T}
 */
const lasting = (collection) => {
  const { prototype } = /** @type {any} */ (collection).constructor;
  for (const name of ["add", "clear", "delete", "get", "has", "set"]) {
    if (prototype[name]) writeProperty(collection, name, { value: prototype[name] });
  }
  return collection;
};

/**
 * JSON of a value, ignoring `toJSON` of arrays and strings: some libraries add one, and the native function calls it.
 * @param {unknown} value
 * @returns {string}
 */
const stringify = (value) => {
  /** @type {[any, PropertyDescriptor | undefined][]} */
  const descriptors = [Object.prototype, Array.prototype, String.prototype]
    .map((prototype) => [prototype, readProperty(prototype, "toJSON")]);
  const replaced = descriptors.filter(([, descriptor]) => descriptor?.configurable);
  for (const [prototype] of replaced) delete prototype.toJSON;
  try {
    return nativeStringify(value);
  } finally {
    for (const [prototype, descriptor] of replaced) writeProperty(prototype, "toJSON", /** @type {any} */ (descriptor));
  }
};
