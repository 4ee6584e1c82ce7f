// Which elements do scripts listen to, and for what? Known in pages of our own, where this runs before any other script.

const CLICKS = ["click", "mousedown", "mouseup", "pointerdown", "pointerup", "touchstart", "touchend"];
const HOVERS = ["mouseover", "mouseenter", "mousemove", "pointerover", "pointerenter", "pointermove"];
const LEAVES_POINTER = ["mouseout", "mouseleave", "pointerout", "pointerleave"];
const KEYS = ["keydown", "keyup", "keypress"];
const TYPING = [...KEYS, "input", "beforeinput", "change"];
const FOCUSING = ["focus", "focusin"];
const LEAVES_FOCUS = ["blur", "focusout"];
const OTHERS = ["dblclick", "contextmenu", "auxclick", "submit"];
const HANDLED = new Set([...CLICKS, ...HOVERS, ...LEAVES_POINTER, ...TYPING, ...FOCUSING, ...LEAVES_FOCUS, ...OTHERS]);
const ATTRIBUTES = [...HANDLED].map((type) => `[on${type}]`).join(", ");

const listening = lasting(new WeakMap()); // target -> [type, callback, capture] of its listeners
const assigned = lasting(new WeakMap()); // target -> types of which a handler property was set

const functionSource = Function.prototype.toString;
let heard = false; // whether any script listens to anything

const isCapture = (options) => (typeof options === "boolean" ? options : Boolean(options?.capture));
const forget = (target, type, callback, capture) => {
  const known = listening.get(target) || [];
  const at = known.findIndex(([t, c, phase]) => t === type && c === callback && phase === capture);
  if (at >= 0) known.splice(at, 1);
};
const remember = (target, type, callback, options) => {
  const capture = isCapture(options);
  heard = true;
  forget(target, type, callback, capture);
  if (!listening.has(target)) listening.set(target, []);
  listening.get(target).push([type, callback, capture]);
  options?.signal?.addEventListener?.("abort", () => forget(target, type, callback, capture), { once: true });
};
const nativeListen = EventTarget.prototype.addEventListener;
const nativeUnlisten = EventTarget.prototype.removeEventListener;
const apply = Reflect.apply;
const listenToPage = () => {
  EventTarget.prototype.addEventListener = function addEventListener(type, callback, options) {
    apply(nativeListen, this, arguments);
    if (callback && type === "scroll") listensToScroll(this);
    if (callback && HANDLED.has(type) && window[KEY].guarded) {
      withNatives(() => remember(this ?? window, type, callback, options));
    }
  };
  EventTarget.prototype.removeEventListener = function removeEventListener(type, callback, options) {
    apply(nativeUnlisten, this, arguments);
    if (HANDLED.has(type)) withNatives(() => forget(this ?? window, type, callback, isCapture(options)));
  };
  for (const holder of [HTMLElement.prototype, SVGElement.prototype, Document.prototype]) {
    for (const type of HANDLED) {
      const property = readProperty(holder, `on${type}`);
      if (!property?.set) continue;
      const set = function (handler) {
        apply(property.set, this, [handler]);
        heard = true;
        if (!assigned.has(this)) assigned.set(this, new Set());
        assigned.get(this).add(type);
      };
      writeProperty(holder, `on${type}`, { ...property, set });
    }
  }
  for (const holder of [HTMLElement.prototype]) {
    const property = readProperty(holder, "onscroll");
    const set = function (handler) {
      apply(property.set, this, [handler]);
      listensToScroll(this);
    };
    writeProperty(holder, "onscroll", { ...property, set });
  }
};

// What frameworks keep on elements whose events they take at their root: React's properties, Svelte's and Solid's handlers.
const readFramework = (element, types) => {
  for (const key of Object.keys(element)) {
    if (key.startsWith("__reactProps$") || key.startsWith("__reactEventHandlers$")) {
      for (const [name, handler] of Object.entries(element[key] || {})) {
        if (!/^on[A-Z]/.test(name) || typeof handler !== "function") continue;
        const type = name.slice(2).replace(/Capture$/, "").toLowerCase();
        types.add(type === "doubleclick" ? "dblclick" : type);
      }
    } else if (/^(\$\$|__)[a-z]+$/.test(key) && HANDLED.has(key.slice(2))) types.add(key.slice(2));
  }
};
// React puts empty handlers on its root and on all that it listens for there, for the sake of old browsers.
const doesSomething = (handler) => typeof handler === "function" && !/\{\s*\}$/.test(functionSource.call(handler));
const isFrameworkRoot = (element) =>
  Object.keys(element).some((key) => /^(__reactContainer\$|_reactRootContainer|_reactListening|\$\$events)/.test(key));

const ownTypes = (target) => {
  const types = new Set();
  for (const [type] of listening.get(target) || []) types.add(type);
  for (const type of assigned.get(target) || []) if (typeof target[`on${type}`] === "function") types.add(type);
  return types;
};

// Which elements does a listener further up mean? Those that its source names: by id, class, attribute or selector.
const MAX_SOURCE = 20_000;
const MAX_MEANT = 200;
const literals = lasting(new WeakMap()); // callback -> what its source names, as selectors
const namedBy = (callback) => {
  const known = literals.get(callback);
  if (known) return known;
  const selectors = new Set();
  const source = typeof callback === "function" ? functionSource.call(callback) : "";
  if (source.length <= MAX_SOURCE && /\b(target|srcElement|composedPath)\b/.test(source)) {
    for (const [, , text] of source.matchAll(/(["'`])((?:(?!\1)[^\\\n]){1,80})\1/g)) {
      if (/^[\w-]+$/.test(text)) {
        selectors.add(`#${CSS.escape(text)}`);
        if (/classList|className/.test(source)) selectors.add(`.${CSS.escape(text)}`);
        if (/tagName|nodeName|localName|closest|matches/.test(source)) selectors.add(text);
      } else if (/^[\w\s.#[\]="'>+~:(),*^$|-]+$/.test(text) && /[.#[]/.test(text)) selectors.add(text);
    }
    for (const [, name] of source.matchAll(/\bdataset\.(\w+)/g)) {
      selectors.add(`[data-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}]`);
    }
  }
  literals.set(callback, selectors);
  return selectors;
};

// A list whose listener asks which of its parts was meant, and names none: every part may be.
const MAX_LEAVES = 30;
const leavesMeant = (element) => {
  const meant = [];
  for (const [type, callback] of listening.get(element) || []) {
    const source = typeof callback === "function" ? functionSource.call(callback) : "";
    // What compares the target itself asks whether the click was outside of something.
    if (!/\b(target|srcElement)\b/.test(source) || /\btarget\s*[!=]==?/.test(source) || namedBy(callback).size) continue;
    if (element.querySelector("a[href], button, input, select, textarea, summary, [role], [tabindex]")) continue;
    const leaves = [...element.querySelectorAll("*")].filter((part) => !part.firstElementChild && part.textContent.trim());
    if (leaves.length <= MAX_LEAVES) for (const leaf of leaves) meant.push([type, leaf]);
  }
  return meant;
};

// A list that takes double clicks for its items (files, rows, nodes of a tree), and does not say which: each may be meant.
const ITEMS = "li, tr, [role=listitem], [role=row], [role=option], [role=treeitem]";
const itemsMeant = (element) => {
  const takes = (listening.get(element) || []).some(
    ([type, callback]) => type === "dblclick" && (typeof callback !== "function" || namedBy(callback).size === 0));
  const items = takes ? [...element.querySelectorAll(ITEMS)].filter((item) => !item.querySelector(ITEMS)) : [];
  return items.length <= MAX_LEAVES ? items : [];
};

// Listeners that jQuery keeps for what is inside an element: [type, selector].
const jQueryDelegates = (element) => {
  const found = [];
  for (const key of Object.keys(element)) {
    if (!/^jQuery\d+$/.test(key)) continue;
    for (const [type, handlers] of Object.entries(element[key]?.events || {})) {
      for (const { selector } of Array.isArray(handlers) ? handlers : []) if (selector) found.push([type, selector]);
    }
  }
  return found;
};

// Elements inside `root` that its listeners mean: for each, `tell(element, type)`.
const delegates = (target, root, tell) => {
  const meant = [];
  for (const [type, callback] of listening.get(target) || []) {
    for (const selector of namedBy(callback)) meant.push([type, selector]);
  }
  if (target !== window) meant.push(...jQueryDelegates(target));
  for (const [type, selector] of meant) {
    let elements;
    try {
      elements = root.querySelectorAll(selector);
    } catch {
      continue; // not a selector after all
    }
    for (const element of elements.length <= MAX_MEANT ? elements : []) tell(element, type);
  }
};

// What the scripts of this document listen to in it: element -> types. Elements that do not appear are listened to by none.
const readHandlers = () => {
  const types = new Map();
  const tell = (element, type) => {
    if (!types.has(element)) types.set(element, new Set());
    types.get(element).add(type);
  };
  const read = (root) => {
    for (const element of root.querySelectorAll(ATTRIBUTES)) {
      for (const name of element.getAttributeNames()) {
        if (name.startsWith("on") && HANDLED.has(name.slice(2))) tell(element, name.slice(2));
      }
    }
    if (!heard && shadowHosts.size === 0) return; // no script listens to anything
    for (const element of root.querySelectorAll("*")) {
      if ((listening.has(element) || assigned.has(element)) && !isFrameworkRoot(element)) {
        const items = itemsMeant(element);
        for (const item of items) tell(item, "dblclick");
        for (const type of ownTypes(element)) if (type !== "dblclick" || !items.length) tell(element, type);
        delegates(element, element, tell);
        for (const [type, leaf] of leavesMeant(element)) tell(leaf, type);
      }
      const root = shadowOf(element);
      if (root) read(root);
      const framework = new Set();
      readFramework(element, framework);
      for (const type of framework) tell(element, type);
    }
  };
  read(document);
  for (const target of [document, window]) delegates(target, document, tell);
  return types;
};

// Whether some script takes an event of these types at the element or further up.
const isHandled = (element, types) => {
  for (let node = element; node; node = node.parentNode || node.host) {
    const own = ownTypes(node);
    if (types.some((type) => own.has(type) || (node.nodeType === 1 && node.hasAttribute(`on${type}`)))) return true;
  }
  const above = ownTypes(window);
  return types.some((type) => above.has(type) || typeof window[`on${type}`] === "function");
};
