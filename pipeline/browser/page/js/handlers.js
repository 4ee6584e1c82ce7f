// Provides `readHandlers` and `isHandled`: which elements scripts listen to, and for which events. Listeners are known where
// this script runs before all others: in guarded pages and in those of agents.

const CLICKS = ["click", "mousedown", "mouseup", "pointerdown", "pointerup", "touchstart", "touchend"];
const HOVERS = ["mouseover", "mouseenter", "mousemove", "pointerover", "pointerenter", "pointermove"];
const POINTER_LEAVES = ["mouseout", "mouseleave", "pointerout", "pointerleave"];
const KEYS = ["keydown", "keyup", "keypress"];
const TYPING = [...KEYS, "input", "beforeinput", "change"];
const FOCUSES = ["focus", "focusin"];
const FOCUS_LEAVES = ["blur", "focusout"];
const OTHERS = ["dblclick", "contextmenu", "auxclick", "submit", "beforeunload"];
const EVENT_TYPES = new Set([...CLICKS, ...HOVERS, ...POINTER_LEAVES, ...TYPING, ...FOCUSES, ...FOCUS_LEAVES, ...OTHERS]);
const WITH_HANDLER_ATTRIBUTE = [...EVENT_TYPES].map((type) => `[on${type}]`).join(", ");

/** Type, callback and capture of the listeners by target. @type {WeakMap<any, [string, any, boolean][]>} */
const listeners = lasting(new WeakMap());
/** Types whose handler property was set, by target. @type {WeakMap<any, Set<string>>} */
const assigned = lasting(new WeakMap());

let hasListeners = false; // whether any script listens to anything

/** @param {any} options */
const isCapture = (options) => (typeof options === "boolean" ? options : Boolean(options?.capture));
/**
 * @param {any} target
 * @param {string} type
 * @param {any} callback
 * @param {boolean} capture
 */
const removeListener = (target, type, callback, capture) => {
  const known = listeners.get(target) || [];
  const at = known.findIndex(([t, c, phase]) => t === type && c === callback && phase === capture);
  if (at >= 0) known.splice(at, 1);
};
/**
 * @param {any} target
 * @param {string} type
 * @param {any} callback
 * @param {any} options
 */
const addListener = (target, type, callback, options) => {
  const capture = isCapture(options);
  hasListeners = true;
  removeListener(target, type, callback, capture);
  if (!listeners.has(target)) listeners.set(target, []);
  /** @type {any} */ (listeners.get(target)).push([type, callback, capture]);
  options?.signal?.addEventListener?.("abort", () => removeListener(target, type, callback, capture), { once: true });
};
const nativeAddListener = EventTarget.prototype.addEventListener;
const nativeRemoveListener = EventTarget.prototype.removeEventListener;
/** Wrap everything by which scripts register handlers. */
const interceptListeners = () => {
  EventTarget.prototype.addEventListener = function addEventListener(
    /** @type {string} */ type, /** @type {any} */ callback, /** @type {any} */ options
  ) {
    apply(nativeAddListener, this, /** @type {any} */ (arguments));
    if (callback && type === "scroll") noteScrollListener(this);
    if (callback && EVENT_TYPES.has(type) && window[KEY].knowsListeners) {
      withNatives(() => addListener(this ?? window, type, callback, options));
    }
  };
  EventTarget.prototype.removeEventListener = function removeEventListener(
    /** @type {string} */ type, /** @type {any} */ callback, /** @type {any} */ options
  ) {
    apply(nativeRemoveListener, this, /** @type {any} */ (arguments));
    if (EVENT_TYPES.has(type)) withNatives(() => removeListener(this ?? window, type, callback, isCapture(options)));
  };
  for (const holder of [HTMLElement.prototype, SVGElement.prototype, Document.prototype]) {
    for (const type of EVENT_TYPES) {
      const property = readProperty(holder, `on${type}`);
      if (!property?.set) continue;
      const nativeSet = property.set;
      const set = /** @this {any} @param {any} handler */ function (handler) {
        apply(nativeSet, this, [handler]);
        hasListeners = true;
        if (!assigned.has(this)) assigned.set(this, new Set());
        /** @type {any} */ (assigned.get(this)).add(type);
      };
      writeProperty(holder, `on${type}`, { ...property, set });
    }
  }
  const property = /** @type {any} */ (readProperty(HTMLElement.prototype, "onscroll"));
  const set = /** @this {any} @param {any} handler */ function (handler) {
    apply(property.set, this, [handler]);
    noteScrollListener(this);
  };
  writeProperty(HTMLElement.prototype, "onscroll", { ...property, set });
};

/**
 * Add the handlers that frameworks store on elements, because they listen at the root: properties of React, handlers of
 * Svelte and Solid.
 * @param {any} element
 * @param {Set<string>} types
 */
const addFrameworkTypes = (element, types) => {
  for (const key of Object.keys(element)) {
    if (key.startsWith("__reactProps$") || key.startsWith("__reactEventHandlers$")) {
      for (const [name, handler] of Object.entries(element[key] || {})) {
        if (!/^on[A-Z]/.test(name) || typeof handler !== "function") continue;
        const type = name.slice(2).replace(/Capture$/, "").toLowerCase();
        types.add(type === "doubleclick" ? "dblclick" : type);
      }
    } else if (/^(\$\$|__)[a-z]+$/.test(key) && EVENT_TYPES.has(key.slice(2))) types.add(key.slice(2));
  }
};
/**
 * Whether a handler has a body. React sets empty handlers on its root and on all elements that it listens for there,
 * because of old browsers.
 * @param {unknown} handler
 */
const hasBody = (handler) => typeof handler === "function" && !/\{\s*\}$/.test(functionSource.call(handler));
/** @param {any} element */
const isFrameworkRoot = (element) =>
  Object.keys(element).some((key) => /^(__reactContainer\$|_reactRootContainer|_reactListening|\$\$events)/.test(key));

/**
 * Event types that scripts handle at this target itself.
 * @param {any} target
 * @returns {Set<string>}
 */
const ownTypes = (target) => {
  const types = new Set();
  for (const [type] of listeners.get(target) || []) types.add(type);
  for (const type of assigned.get(target) || []) if (typeof target[`on${type}`] === "function") types.add(type);
  return types;
};

/**
 * [type, handler] of the handlers in attributes and properties of a target. Attributes that do not mention the event are left
 * out: the browser would compile them now.
 * @param {any} target
 * @returns {[string, any][]}
 */
const propertyHandlers = (target) => {
  const types = new Set(assigned.get(target) || []);
  const attributes = target.nodeType === 1 ? target.getAttributeNames() : [];
  for (const name of attributes) {
    if (name.startsWith("on") && EVENT_TYPES.has(name.slice(2)) && /\bevent\b/.test(target.getAttribute(name))) types.add(name.slice(2));
  }
  return [...types].filter((type) => typeof target[`on${type}`] === "function").map((type) => [type, target[`on${type}`]]);
};

// ---- event delegation: elements that a listener at an ancestor is meant for ----

const MAX_SOURCE = 20_000;
const MAX_DELEGATES = 200;
/** Selectors by callback. @type {WeakMap<any, Set<string>>} */
const selectorsByCallback = lasting(new WeakMap());
/**
 * Selectors of the elements that the source of a listener names: by id, class, attribute, tag or selector.
 * @param {any} callback
 * @returns {Set<string>}
 */
const selectorsIn = (callback) => {
  const known = selectorsByCallback.get(callback);
  if (known) return known;
  /** @type {Set<string>} */
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
      selectors.add(`[data-${name.replace(/[A-Z]/g, (/** @type {string} */ letter) => `-${letter.toLowerCase()}`)}]`);
    }
  }
  selectorsByCallback.set(callback, selectors);
  return selectors;
};

const MAX_PARTS = 30;
/**
 * [type, element] for the parts of a list whose listener reads the event's target and names no element: each may be meant.
 * @param {any} element
 * @returns {[string, Element][]}
 */
const leafDelegates = (element) => {
  /** @type {[string, Element][]} */
  const found = [];
  for (const [type, callback] of listeners.get(element) || []) {
    const source = typeof callback === "function" ? functionSource.call(callback) : "";
    // A listener that compares the target itself checks whether the click was outside of something.
    if (!/\b(target|srcElement)\b/.test(source) || /\btarget\s*[!=]==?/.test(source) || selectorsIn(callback).size) continue;
    if (element.querySelector("a[href], button, input, select, textarea, summary, [role], [tabindex]")) continue;
    const leaves = [...element.querySelectorAll("*")].filter((part) => !part.firstElementChild && part.textContent.trim());
    if (leaves.length <= MAX_PARTS) for (const leaf of leaves) found.push([type, leaf]);
  }
  return found;
};

const ITEMS = "li, tr, [role=listitem], [role=row], [role=option], [role=treeitem]";
/**
 * The items of a list (files, rows, nodes of a tree) that takes double clicks and names no element: each may be meant.
 * @param {any} element
 * @returns {Element[]}
 */
const doubleClickItems = (element) => {
  const takesDoubleClicks = (listeners.get(element) || []).some(
    ([type, callback]) => type === "dblclick" && (typeof callback !== "function" || selectorsIn(callback).size === 0));
  const items = takesDoubleClicks
    ? [...element.querySelectorAll(ITEMS)].filter((item) => !item.querySelector(ITEMS))
    : [];
  return items.length <= MAX_PARTS ? items : [];
};

/**
 * [type, selector] of the delegated listeners that jQuery stores on an element.
 * @param {any} element
 * @returns {[string, string][]}
 */
const jQueryDelegates = (element) => {
  /** @type {[string, string][]} */
  const found = [];
  for (const key of Object.keys(element)) {
    if (!/^jQuery\d+$/.test(key)) continue;
    for (const [type, handlers] of Object.entries(element[key]?.events || {})) {
      for (const { selector } of Array.isArray(handlers) ? handlers : []) if (selector) found.push([type, selector]);
    }
  }
  return found;
};

/**
 * Call `add` for each element inside `root` that a listener of `target` names.
 * @param {any} target
 * @param {any} root
 * @param {(element: Element, type: string) => void} add
 */
const addDelegates = (target, root, add) => {
  /** @type {[string, string][]} */
  const delegates = [];
  for (const [type, callback] of [...(listeners.get(target) || []), ...propertyHandlers(target)]) {
    for (const selector of selectorsIn(callback)) delegates.push([type, selector]);
  }
  if (target !== window) delegates.push(...jQueryDelegates(target));
  let means = false;
  for (const [type, selector] of delegates) {
    let elements;
    try {
      elements = root.querySelectorAll(selector);
    } catch {
      continue; // not a selector
    }
    if (elements.length > MAX_DELEGATES) continue;
    for (const element of elements) add(element, type);
    means ||= elements.length > 0 && CLICKS.includes(type);
  }
  if (means && target.nodeType === 1 && target.matches("table, tbody, ul, ol")) {
    add(target, HAS_ITEMS);
    add(target, PART_CODE + codeOf(target));
  }
};

/**
 * Call `add` for the parts of an element of which its listeners may mean each: items of lists, else leaves.
 * @param {Element} element
 * @param {Handlers} types Of what is known so far.
 * @param {(element: Element, type: string) => void} add
 */
const addParts = (element, types, add) => {
  const leaves = leafDelegates(element);
  const meant = itemsMeant(element);
  if (meant || leaves.length) add(element, PART_CODE + codeOf(element));
  if (!meant || (leaves.length && meant.items[0].localName !== "tr")) {
    for (const [type, leaf] of leaves) add(leaf, type);
    return;
  }
  add(element, HAS_ITEMS);
  for (const item of meant.items) {
    if (hasAny(types.get(item) ?? NO_TYPES, CLICKS)) continue; // it says so itself
    add(item, meant.type);
    add(item, IS_ITEM);
  }
};

// ---- results ----

/**
 * Event types that the scripts of this document handle, by element. Elements without handlers are not in the map.
 * @returns {Map<Element, Set<string>>}
 */
const readHandlers = () => {
  /** @type {Map<Element, Set<string>>} */
  const types = new Map();
  let usesFramework = false; // which listens at the document for the elements that it keeps handlers on
  const add = (/** @type {Element} */ element, /** @type {string} */ type) => {
    if (!types.has(element)) types.set(element, new Set());
    /** @type {any} */ (types.get(element)).add(type);
  };
  const read = (/** @type {any} */ root) => {
    for (const element of root.querySelectorAll(WITH_HANDLER_ATTRIBUTE)) {
      for (const name of element.getAttributeNames()) {
        if (name.startsWith("on") && EVENT_TYPES.has(name.slice(2))) add(element, name.slice(2));
      }
      addDelegates(element, element, add);
    }
    if (!hasListeners && shadowHosts.size === 0) return;
    for (const element of root.querySelectorAll("*")) {
      if ((listeners.has(element) || assigned.has(element)) && !isFrameworkRoot(element)) {
        const items = doubleClickItems(element);
        for (const item of items) add(item, "dblclick");
        for (const type of ownTypes(element)) if (type !== "dblclick" || !items.length) add(element, type);
        addDelegates(element, element, add);
      }
      const shadow = shadowOf(element);
      if (shadow) read(shadow);
      /** @type {Set<string>} */
      const framework = new Set();
      addFrameworkTypes(element, framework);
      for (const type of framework) add(element, type);
      usesFramework ||= framework.size > 0;
    }
  };
  read(document);
  for (const element of [...types.keys()]) if (!isFrameworkRoot(element)) addParts(element, types, add);
  for (const target of [document, window]) addDelegates(target, document, add);
  if (!usesFramework && window[KEY].guarded) {
    const { code, items } = itemsOfPage(types);
    for (const item of items) {
      add(item, IS_ITEM_OF_PAGE);
      add(item, PART_CODE + code);
    }
  }
  return types;
};

/**
 * Whether a script handles an event of one of these types at the element or at an ancestor.
 * @param {any} element
 * @param {string[]} types
 * @returns {boolean}
 */
const isHandled = (element, types) => {
  for (let node = element; node; node = parentOrHost(node)) {
    const own = ownTypes(node);
    if (types.some((type) => own.has(type) || (node.nodeType === 1 && unclobbered(node).hasAttribute(`on${type}`)))) return true;
  }
  const ofWindow = ownTypes(window);
  return types.some((type) => ofWindow.has(type) || typeof /** @type {any} */ (window)[`on${type}`] === "function");
};
