// Provides `find`: finds a recorded element on the page, and a point of it that takes the pointer.

// ---- the ladder: exact, role, xpath, css ----

const MAX_LIST_STEPS = 3; // last steps of a path of which one may be the number of an item: a cell, its row, their group

// Counts, times and ages ("just now", "2 minutes ago", "27s ago") change and do not identify an element.
const AGE =
  /(?:\ban?|#) (?:second|minute|hour|day|week|month|year)s?\b|# ?(?:s|secs?|m|mins?|h|hrs?|d|w|wks?|mos?|y|yrs?)\.?(?= ago\b)/gi;
const JUST_NOW = /\b(?:just now|(?:a few )?(?:moments?|seconds?) ago)\b/gi;
/** @param {string} text */
const maskNumbers = (text) => text.replace(/\d+/g, "#").replace(JUST_NOW, "# ages ago").replace(AGE, "# ages");
/**
 * @param {RecordedAction} action
 * @param {Candidate} candidate
 */
const hasSameTarget = (action, candidate) => !action.target || candidate.target === action.target;
// Session ids and tokens are random on every load and do not identify an element.
const RANDOM_TOKEN = /(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{12,}[\w.~%-]*|\d{9,}/gi;
/**
 * @param {RecordedAction} action
 * @param {Candidate} candidate
 */
const hasSimilarTarget = (action, candidate) =>
  hasSameTarget(action, candidate) ||
  candidate.target.replace(RANDOM_TOKEN, "*") === action.target.replace(RANDOM_TOKEN, "*");

/**
 * The element at the recorded path, if it is still the recorded one. It mostly is, and the page need not be searched then.
 * @param {RecordedAction} action
 * @param {SnapshotOptions} options
 * @param {(name: string, recorded: string) => boolean} matchesName
 * @param {Rung} rung
 * @returns {FoundElement | null}
 */
const findInPlace = (action, options, matchesName, rung) => {
  const { doc } = followFrames(action.frame);
  const [path, pseudo] = action.xpath.split(/(?=::scroll-)/);
  const element = doc && resolve(path, doc);
  if (!element) return null;
  const candidates = passOverElement({ ...options, hover: false, kind: action.kind }, element)
    .map((c) => ({ ...c, ...(pseudo && { target: "", role: "", ...controlOf(element, pseudo) }) }));
  // Where internals are unknown, a custom element is the recorded one if nothing else tells the two apart.
  const isUnknown = mayHaveUnknownInternals(element);
  const matches = candidates.some((c) =>
    (c.role === action.role || (isUnknown && c.role === "")) &&
    (matchesName(c.name, action.name) || (isUnknown && c.name === "")) && hasSimilarTarget(action, c));
  return matches ? [element, rung, pseudo] : null;
};

/**
 * Whether a candidate allows the recorded action. Agents do with an element whatever it allows, and know it by its click.
 * @param {Candidate} candidate
 * @param {RecordedAction} action
 * @param {SnapshotOptions} options
 */
const isOfKind = ({ kind, value }, action, options) =>
  options.outline ? kind === "click" : kind === action.kind && value === action.value;
/**
 * Search the whole page for the recorded element.
 * @param {RecordedAction} action
 * @param {SnapshotOptions} options
 * @returns {FoundElement | null}
 */
const searchPage = (action, options) => {
  const pass = passOverPage(options);
  const frame = stringify(action.frame);
  const frames = pass.documents.map(stringify);
  const sameKind = pass.candidates
    .map((candidate, i) => /** @type {[Candidate, any]} */ ([candidate, pass.elements[i]]))
    .filter(([c]) => isOfKind(c, action, options) && frames[c.frame] === frame && c.role === action.role);
  const sameName = sameKind.filter(([c]) => c.name === action.name && hasSimilarTarget(action, c));
  const exact = sameName.filter(([c]) => hasSameTarget(action, c));
  const best = exact.length ? exact : sameName;
  const found = (/** @type {[Candidate, any]} */ [candidate, element], /** @type {Rung} */ rung) =>
    /** @type {FoundElement} */ ([element, rung, isControl(candidate) ? candidate.tag : undefined]);
  if (best.length === 1) return found(best[0], "role");
  const nth = best.find(([c]) => c.nth === action.nth);
  if (nth) return found(nth, "role");
  // The name has changed. Only an element that agrees otherwise may be used.
  const related = sameKind.filter(([c]) =>
    action.target ? c.target === action.target : maskNumbers(c.name) === maskNumbers(action.name));
  const byPath = related.find(([c]) => pathOf(pass, c.place) === action.xpath);
  if (byPath) return found(byPath, "xpath");
  const byCss = related.find(([c]) => action.css && c.css === action.css);
  return byCss ? found(byCss, "css") : null;
};

/**
 * The recorded item at another place of its list. In a caller's page, an item that only a listener around it means is no
 * candidate, so that `searchPage` does not find it.
 * @param {RecordedAction} action
 * @param {SnapshotOptions} options
 * @returns {FoundElement | null}
 */
const findInList = (action, options) => {
  const { doc } = followFrames(action.frame);
  if (!doc || !action.name) return null;
  const numbers = [...action.xpath.matchAll(/\[\d+\]/g)].slice(-MAX_LIST_STEPS);
  for (const { index, 0: number } of numbers.reverse()) {
    const [before, after] = [action.xpath.slice(0, index), action.xpath.slice(index + number.length)];
    const found = [];
    for (let place = 1; place <= MAX_ITEMS && resolve(`${before}[${place}]`, doc); place++) {
      const xpath = `${before}[${place}]${after}`;
      const item = findInPlace({ ...action, xpath }, options, (name, recorded) => name === recorded, "role");
      if (item) found.push(item);
    }
    if (found.length) return found.length === 1 ? found[0] : null;
  }
  return null;
};

// ---- points ----

/**
 * The element that the pointer reaches at a point of the window, also in shadow roots.
 * @param {Document} doc
 * @param {number} x
 * @param {number} y
 * @returns {any}
 */
const elementAt = (doc, x, y) => {
  /** @type {any} */
  let top = doc.elementFromPoint(x, y);
  while (top && shadowOf(top)) {
    const deeper = shadowOf(top).elementFromPoint(x, y);
    if (!deeper || deeper === top) break;
    top = deeper;
  }
  return top;
};
/**
 * Whether a node is an element or inside of it, also through shadow roots.
 * @param {any} inner
 * @param {any} element
 */
const isWithin = (inner, element) => {
  for (let node = inner; node; node = parentOrHost(node)) if (node === element) return true;
  return false;
};
/**
 * Whether the pointer at a point of the window reaches an element.
 * @param {any} element
 * @param {number} x
 * @param {number} y
 */
const takesPointer = (element, x, y) => isWithin(elementAt(element.ownerDocument, x, y), element);

/** Boxes that were scrolled for an action: scrollTop and scrollLeft before, and after. @type {[any, number, number, number, number][]} */
const scrolledForAction = [];
/**
 * Scroll an element into view. Sideways no further than necessary: a box that clips its overflow would otherwise keep
 * showing what is beside its content.
 * @param {any} element
 * @param {ScrollLogicalPosition} [inline]
 */
const scrollToElement = (element, inline = "nearest") => {
  const boxes = [];
  for (let node = parentOrHost(element); node; node = parentOrHost(node)) {
    if (node.nodeType === 1) boxes.push([node, node.scrollTop, node.scrollLeft]);
  }
  element.scrollIntoView({ block: "center", inline, behavior: "instant" });
  for (const [box, top, left] of boxes) {
    if (box.scrollTop !== top || box.scrollLeft !== left) scrolledForAction.push([box, top, left, box.scrollTop, box.scrollLeft]);
  }
};
/** Scroll these boxes back, the last first, unless they were scrolled again since. */
const scrollBack = () => {
  for (const [box, top, left, newTop, newLeft] of scrolledForAction.splice(0).reverse()) {
    if (box.scrollTop === newTop && box.scrollLeft === newLeft) box.scrollTo({ top, left, behavior: "instant" });
  }
};

/**
 * @param {Edges} rect
 * @param {Edges} screen
 * @returns {[number, number][]}
 */
const boxPoints = (rect, screen) => {
  const box = intersect(rect, screen);
  if (isEmpty(box)) return [];
  return /** @type {[number, number][]} */ ([[0.5, 0.5], [0.15, 0.5], [0.85, 0.5], [0.5, 0.15], [0.5, 0.85]]).map(
    ([fx, fy]) => [box.left + (box.right - box.left) * fx, box.top + (box.bottom - box.top) * fy]);
};
/**
 * Points of an element to try, in its window.
 * @param {any} element
 * @param {Edges} screen
 * @returns {[number, number][]}
 */
const pointsOf = (element, screen) => {
  if (element.localName === "area") return boxPoints(areaRect(element, imageOf(element)), screen);
  const points = [...element.getClientRects()].flatMap((rect) => boxPoints(rect, screen));
  const inner = element.querySelector(LISTED);
  if (!inner || !element.matches(LISTED)) return points;
  // What an item of a tree shows itself stands above the items inside it.
  const rect = rectOf(element.getBoundingClientRect());
  return [...points, ...boxPoints({ ...rect, bottom: inner.getBoundingClientRect().top }, screen)];
};
/**
 * Whether a point of an item lies on something in it that is clicked on its own: a button, a link, an item of its own.
 * @param {any} element
 * @param {number} x
 * @param {number} y
 */
const isOnPart = (element, x, y) => {
  if (element.matches(NATIVELY_ACTIVE) || element.matches(OWN_LINKS)) return false;
  for (let node = elementAt(element.ownerDocument, x, y); node && node !== element; node = parentOrHost(node)) {
    if (node.nodeType === 1 && node.matches(`${OWN_LINKS}, ${OWN_CONTROLS}, ${LISTED}`)) return true;
  }
  return false;
};

/**
 * Convert a point of an inner window to this one.
 * @param {any} view
 * @param {number} x
 * @param {number} y
 * @returns {Point}
 */
const inTopWindow = (view, x, y) => {
  for (let win = view; win !== window; win = win.parent) {
    const frame = win.frameElement;
    const outer = frame.getBoundingClientRect();
    [x, y] = [x + outer.left + frame.clientLeft, y + outer.top + frame.clientTop];
  }
  return { x, y };
};
/**
 * Scroll an element into view and return a point of it that takes the pointer, or the obstacle.
 * @param {any} element
 * @returns {Point | Obstacle}
 */
const pointOf = (element) => {
  const target = element.localName === "area" ? imageOf(element) : element;
  const view = element.ownerDocument.defaultView;
  /** @type {[number, number][]} */
  let points = [];
  for (const inline of /** @type {const} */ (["nearest", "center"])) {
    scrollToElement(target, inline);
    points = pointsOf(element, { left: 0, top: 0, right: view.innerWidth, bottom: view.innerHeight });
    const free = points.find(([x, y]) => takesPointer(element, x, y) && !isOnPart(element, x, y)) ??
      points.find(([x, y]) => takesPointer(element, x, y));
    if (free) return inTopWindow(view, ...free);
  }
  const over = points.length ? element.ownerDocument.elementFromPoint(...points[0]) : null;
  if (!over) return { obstacle: ["element_outside", "it lies outside the page"] };
  // Half of a surrogate pair at the end cannot be encoded in UTF-8.
  return { obstacle: ["element_covered", over.outerHTML.slice(0, 120).replace(/[\ud800-\udbff]$/, "")] };
};

// ---- preparing the action ----

/**
 * Make a link of a guarded page that targets a new tab load in this tab for this click, so that the guard sees its document.
 * @param {any} element
 * @returns {boolean} Whether the link targets a new tab.
 */
const keepInTab = (element) => {
  const link = element.closest("a, area");
  if (!window[KEY].guarded || !link || !isNewTab(targetOf(link))) return false;
  activity.retargeted.push([link, link.getAttribute("target")]);
  link.setAttribute("target", "_top");
  return true;
};

/** Event types that an action dispatches. @type {Record<string, string[]>} */
const EVENTS_OF = {
  click: [...CLICKS, "change", "input"], dblclick: ["dblclick", ...CLICKS], contextmenu: ["contextmenu", "auxclick"],
  hover: [...HOVERS, ...POINTER_LEAVES], press: KEYS, input: TYPING, submit: [...TYPING, "submit"],
  focus: [...FOCUSES, ...FOCUS_LEAVES], select: ["change", "input"],
};
// Elements to which the browser itself reacts, also without listeners.
const NATIVELY_ACTIVE = "label, summary, button, input, select, textarea, [popovertarget], [commandfor], [interestfor], [contenteditable]";
/**
 * Whether a script or the browser may change the page (not: load another one) when this action is performed.
 * @param {any} element
 * @param {string} kind
 * @returns {boolean}
 */
const mayReact = (element, kind) => {
  const script = element.ownerDocument.defaultView[KEY];
  return !script?.knowsListeners || element.closest(NATIVELY_ACTIVE) !== null || script.isHandled(element, EVENTS_OF[kind] || []);
};

const WITH_POINTER = ["submit", "beforeunload", ...HOVERS, ...POINTER_LEAVES, ...FOCUSES, ...FOCUS_LEAVES];
/**
 * Whether a script handles an action on this element, the pointer and the focus that it moves, or the submission of its form.
 * @param {any} element
 * @param {string} kind
 */
const isScripted = (element, kind) => {
  const script = element.ownerDocument.defaultView[KEY];
  const types = [...(EVENTS_OF[kind] || []), ...WITH_POINTER];
  return !script?.knowsListeners || script.isHandled(element, types) || Boolean(element.form && script.isHandled(element.form, types));
};

const TOUCHES = ["touchstart", "touchend"];
/** @param {any} element */
const dispatchTouch = (element) => {
  for (const type of TOUCHES) {
    const TypeOfEvent = typeof TouchEvent === "function" ? TouchEvent : UIEvent;
    element.dispatchEvent(new TypeOfEvent(type, { bubbles: true, cancelable: true, composed: true }));
  }
};
/** Whether scripts listen for touches at the element itself. @param {any} element */
const listensToTouch = (element) => {
  const script = element.ownerDocument.defaultView[KEY];
  return script?.knowsListeners && script.isHandled(element, TOUCHES) && hasAny(script.readHandlers().get(element) || NO_TYPES, TOUCHES);
};
// Fields that the browser fills from a picker or from parts; typing a whole value has no effect.
const PICKED_TYPES = new Set(["date", "time", "datetime-local", "month", "week", "color", "range"]);
/** Dispatch the events of a changed field. @param {any} element */
const dispatchInput = (element) => {
  for (const type of ["input", "change"]) element.dispatchEvent(new Event(type, { bubbles: true, composed: type === "input" }));
};
/**
 * Set the value of such a field.
 * @param {any} element
 * @param {string} value
 * @returns {{ isSet?: boolean, obstacle?: [string, string] }}
 */
const setValue = (element, value) => {
  const { HTMLInputElement: input, HTMLTextAreaElement: area } = element.ownerDocument.defaultView;
  const { prototype: proto } = element.localName === "textarea" ? area : input;
  const set = /** @type {any} */ (Object.getOwnPropertyDescriptor(proto, "value")).set; // scripts may have replaced the element's
  const before = element.value;
  set.call(element, value);
  if (value && element.type !== "range" && element.value !== value.toLowerCase() && element.value !== value) {
    set.call(element, before);
    return { obstacle: ["value_rejected", `a field of type ${element.type} accepts no such value`] };
  }
  dispatchInput(element);
  return { isSet: true };
};
/**
 * Perform or prepare an action that needs no pointer: select an option, or focus the element for the keyboard.
 * @param {any} element
 * @param {RecordedAction} action
 * @returns {Record<string, unknown>} An obstacle; or whether everything is done already (`isSet`).
 */
const actWithoutPointer = (element, { kind, value }) => {
  noteAction();
  scrollToElement(element);
  if (kind === "select") {
    const [option] = namedOptions(element).find(([, name]) => name === value) ?? [];
    if (!option) return { obstacle: ["option_missing", `no option ${value}`] };
    if (isDisabledOption(option)) return { obstacle: ["element_disabled", "the option is disabled"] };
    option.selected = !element.multiple || !option.selected;
    dispatchInput(element);
    return {};
  }
  element.focus({ preventScroll: true });
  if (kind === "focus" && value === "away") element.blur();
  if (kind === "input" || kind === "submit") {
    if (element.localName === "input" && PICKED_TYPES.has(element.type)) return setValue(element, value);
    if (element.isContentEditable) getSelection()?.selectAllChildren(element);
    element.select?.();
  }
  return {};
};
const POINTER_KINDS = new Set(["click", "dblclick", "contextmenu", "hover"]);

/** Dispatch the `change` event of the focused field, which browsers dispatch only when it loses the focus. */
const dispatchChange = () => focusedElement()?.dispatchEvent(new Event("change", { bubbles: true }));

/**
 * The cross-origin frame that contains the recorded element, if it is exposed: its token, and the rest of the path.
 * @param {RecordedAction} action
 * @param {SnapshotOptions} options
 */
const crossOriginStep = (action, options) => {
  const { doc, frame, remaining } = followFrames(action.frame);
  if (doc || !frame || !isCrossOrigin(frame)) return null;
  const candidates = passOverElement({ ...options, hover: false, kind: "" }, frame);
  return candidates.length ? { crossOrigin: frame[TOKEN] ?? "", remaining } : null;
};

/**
 * Find a recorded element and prepare the action.
 * @param {RecordedAction} action
 * @param {SnapshotOptions} options
 * @param {FoundElement | null} [row] Result of `findRow`, for a row of a virtual list. Null: the list is gone. Without it, the
 *   page is searched.
 */
const find = (action, options, row) => {
  const outside = crossOriginStep(action, options);
  if (outside) return outside;
  // In pages of callers listeners are unknown, and elements that only have listeners are no candidates. Such an
  // element is not found by the search when its name has changed; the last step finds it.
  const found = row !== undefined ? row
    : findInPlace(action, options, (name, recorded) => name === recorded, "exact") ?? searchPage(action, options) ??
      findInList(action, options) ??
      findInPlace(action, options, (name, recorded) => maskNumbers(name) === maskNumbers(recorded), "xpath");
  if (!found) return { rung: "" };
  const [element, rung, pseudo] = found;
  if (pseudo) return { rung, newTab: false, ...pressControl(element, pseudo) };
  if (options.outline && isDisabled(element)) {
    return { rung, newTab: false, obstacle: ["element_disabled", "it is disabled"] };
  }
  if (options.notes && window[KEY].guarded) noteBefore(element, action.kind);
  const handled = mayReact(element, action.kind);
  const scripted = isScripted(element, action.kind);
  if (!POINTER_KINDS.has(action.kind)) return { rung, newTab: false, handled, scripted, ...actWithoutPointer(element, action) };
  const point = pointOf(element);
  const isClick = action.kind === "click" && !("obstacle" in point);
  const newTab = isClick && keepInTab(element);
  if (isClick && listensToTouch(element)) dispatchTouch(element);
  const hasCanvas = element.localName === "canvas" || element.querySelector("canvas") !== null;
  return { rung, newTab, handled, scripted, hasCanvas, ...point };
};
