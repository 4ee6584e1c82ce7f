// What does our script use that a page's scripts may replace? Copies from before they could.

const nativeSetTimeout = window.setTimeout.bind(window);
const nativeClearTimeout = window.clearTimeout.bind(window);
const nativeSetInterval = window.setInterval.bind(window);
const nativeClearInterval = window.clearInterval.bind(window);
const nativeFrame = window.requestAnimationFrame.bind(window);
const nativeStringify = JSON.stringify;
const now = performance.now.bind(performance);

const readProperty = Object.getOwnPropertyDescriptor;
const writeProperty = Object.defineProperty;
// [holder, name, descriptor] of every shared function that our script calls while it looks at a page.
const BORROWED = [];
for (const [holder, names] of [
  [Array.prototype, "concat entries every filter find findIndex flatMap forEach join map pop push reduce shift slice some sort splice unshift values"],
  [Array, "from isArray"],
  [Map.prototype, "delete entries get has keys set values"],
  [Set.prototype, "add delete has values"],
  [WeakMap.prototype, "get has set"],
  [WeakSet.prototype, "add has"],
  [String.prototype, "charCodeAt endsWith includes indexOf match matchAll padStart replace slice split startsWith toLowerCase toUpperCase toWellFormed trim"],
  [RegExp.prototype, "exec test"],
  [Object, "defineProperty entries getOwnPropertyDescriptor getPrototypeOf keys"],
  [Math, "ceil floor imul max min round"],
  [Number, "isFinite"],
  [Promise, "race"],
  [Promise.prototype, "then"],
  [URL, "canParse"],
  [CSS, "escape"],
  [window, "getComputedStyle"],
  [Element.prototype, "checkVisibility closest getAttribute getAttributeNames getBoundingClientRect getClientRects hasAttribute matches querySelector querySelectorAll removeAttribute scrollIntoView scrollTo setAttribute"],
  [Document.prototype, "elementFromPoint getAnimations querySelector querySelectorAll"],
  [DocumentFragment.prototype, "querySelector querySelectorAll"],
  [Node.prototype, "contains getRootNode"],
]) {
  for (const name of names.split(" ")) {
    const descriptor = readProperty(holder, name);
    if (descriptor) BORROWED.push([holder, name, descriptor]);
  }
}
for (const holder of [Array, Map, Set]) {
  BORROWED.push([holder.prototype, Symbol.iterator, readProperty(holder.prototype, Symbol.iterator)]);
}

// Run `work` (which must not wait for anything) with the browser's own functions in place, then give the page its own back.
const withNatives = (work) => {
  const replaced = [];
  for (let i = 0; i < BORROWED.length; i++) {
    const entry = BORROWED[i];
    if (entry[0][entry[1]] === entry[2].value) continue;
    const theirs = readProperty(entry[0], entry[1]);
    if (theirs && !theirs.configurable) continue;
    replaced[replaced.length] = [entry[0], entry[1], theirs];
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

// A map or set whose methods are the browser's own, whatever becomes of those of others.
const lasting = (collection) => {
  const { prototype } = collection.constructor;
  for (const name of ["add", "clear", "delete", "get", "has", "set"]) {
    if (prototype[name]) writeProperty(collection, name, { value: prototype[name] });
  }
  return collection;
};

// Some libraries give arrays or strings a toJSON of their own, which even the native function obeys.
const stringify = (value) => {
  const own = [Object.prototype, Array.prototype, String.prototype]
    .map((prototype) => [prototype, readProperty(prototype, "toJSON")])
    .filter(([, descriptor]) => descriptor?.configurable);
  for (const [prototype] of own) delete prototype.toJSON;
  try {
    return nativeStringify(value);
  } finally {
    for (const [prototype, descriptor] of own) writeProperty(prototype, "toJSON", descriptor);
  }
};
