// Provides `addActions`: the candidates of an element, which are the actions that it allows and how to find it again.

/** @type {Set<string>} */
const NO_TYPES = new Set();
const DISABLEABLE = new Set(["button", "input", "select", "textarea", "option", "fieldset"]); // besides custom elements

/**
 * A CSS selector that is likely to survive changes of the page, empty if there is none.
 * @param {any} node
 * @returns {string}
 */
const stableSelector = (node) => {
  const element = unclobbered(node);
  for (const name of ["data-testid", "data-test-id", "data-test", "data-qa", "data-cy"]) {
    const value = element.getAttribute(name);
    if (value) return `[${name}="${CSS.escape(value)}"]`;
  }
  return element.id && !/\d{3,}|:/.test(element.id) ? `#${CSS.escape(element.id)}` : "";
};

/**
 * The absolute URL of a link, empty if it has none.
 * @param {any} element
 * @returns {string}
 */
const linkTarget = (element) => {
  const tag = element.localName;
  if (tag !== "a" && tag !== "area") return "";
  const isSvg = element.namespaceURI !== XHTML;
  const href = isSvg ? element.href?.baseVal : element.href;
  if (typeof href !== "string" || href === "") return "";
  if (isSvg) return URL.canParse(href, element.baseURI) ? new URL(href, element.baseURI).href : "";
  // `href` of a link that cannot be resolved is the text of the attribute, which does not start with this page's origin.
  return href.startsWith(`${location.origin}/`) || URL.canParse(href) ? href : "";
};

/**
 * Whether a label represents its checkbox or radio button, because that is not visible itself (CSS-only menus and tabs).
 * @param {any} element
 */
const representsControl = (element) => {
  const control = element.localName === "label" && element.control;
  if (!control || !["checkbox", "radio"].includes(control.type)) return false;
  const rect = control.getBoundingClientRect();
  return !isSeen(control) || rect.width <= 2 || rect.height <= 2 || rect.right <= 0;
};

/**
 * Method by which a button submits its form; empty if it would be GET, and a script handles the submission.
 * @param {any} button
 * @param {Handlers} handlers
 * @returns {string}
 */
const submissionMethod = (button, handlers) => {
  const method = (button.getAttribute("formmethod") || formMethod.call(button.form)).toLowerCase();
  return method === "get" && handlers.get(button.form)?.has("submit") ? "" : method;
};

/**
 * Whether an element takes no input.
 * @param {any} element
 */
const isDisabled = (element) =>
  ((DISABLEABLE.has(element.localName) || internalsOf(element)) && element.matches(":disabled")) ||
  ariaOf(element, "aria-disabled") === "true";
/**
 * Method by which an element submits its form: a submit button, and for agents (which press Enter) a text field as well.
 * @param {Pass} pass
 * @param {any} element
 * @param {Handlers} handlers
 */
const submissionOf = (pass, element, handlers) => {
  const tag = element.localName;
  const isSubmit = (tag === "button" && element.type === "submit") ||
    (tag === "input" && (element.type === "submit" || element.type === "image"));
  const isField = pass.options.outline && tag === "input" && isTextField(element);
  return (isSubmit || isField) && element.form ? submissionMethod(element, handlers) : "";
};

/**
 * Add a candidate.
 * @param {Pass} pass
 * @param {ActionKind} action
 * @param {any} node
 * @param {string} role
 * @param {Pick<Position, "context" | "place" | "rect">} position
 * @param {number} [at] Number of the candidate; without it, it comes last.
 */
const addCandidate = (pass, [kind, value], node, role, { context, place, rect }, at = pass.candidates.length) => {
  if (pass.only && node !== pass.only) return;
  if (kind === "click") pass.counts.clicks += 1;
  const element = unclobbered(node);
  const tag = element.localName;
  const { origin } = context;
  const name = nameOf(node, role);
  const declared = declarationsOf(element, name);
  if (kind.endsWith("click") && !pass.roles.has(role)) {
    declared.handler = `${declared.handler} ${codeAround(node, context.handlers)}`.trim();
  }
  pass.candidates.splice(at, 0, {
    kind, value, role, name, ...declared, place: /** @type {number} */ (place),
    frame: context.number, css: stableSelector(node), target: linkTarget(node), tag,
    disabled: isDisabled(element),
    submits: submissionOf(pass, element, context.handlers),
    form: kind === "submit" && element.form ? searchFormOf(element) : "",
    download: element.hasAttribute("download"),
    covered: false,
    listener: kind === "click" ? listenerAround(context.handlers.get(node)) : "",
    nth: 0,
    box: [
      Math.round(rect.left + origin.x), Math.round(rect.top + origin.y), Math.round(rect.width), Math.round(rect.height),
    ],
  });
  pass.elements.splice(at, 0, node);
};

/**
 * Where a listener is that may mean an element which says nothing of it, see items.js; empty if there is none.
 * @param {Set<string> | undefined} types
 */
const listenerAround = (types) => (types?.has(IS_ITEM) ? "list" : types?.has(IS_ITEM_OF_PAGE) ? "page" : "");

/**
 * What the code says that a click on a part of an element runs at the element around it, see `codeOf`.
 * @param {any} part
 * @param {Handlers} handlers
 * @returns {string}
 */
const codeAround = (part, handlers) => {
  const found = [];
  for (let node = handlers.size ? part : null; node; node = parentOf(node)) {
    for (const type of handlers.get(node) ?? NO_TYPES) if (type.startsWith(PART_CODE)) found.push(type.slice(PART_CODE.length));
  }
  return found.join(" ");
};

/**
 * Whether an element is clicked as a whole although its role does not say so.
 * @param {any} node
 * @param {any} element
 * @param {string} tag
 * @param {boolean} hasPointerCursor Whether the cursor changes to a pointer at this element.
 */
const isClickable = (node, element, tag, hasPointerCursor) => {
  if (tag === "label" && element.control) return true;
  if (element.hasAttribute("onclick") || hasBody(element.onclick)) return true;
  if (hasPointerCursor && !shadowOf(node)) return true;
  return hasPopup(element) && element.tabIndex >= 0;
};

/**
 * Add the candidates of an exposed element. Sets `pendingClick` of its position if the element is to be clicked only when
 * nothing inside it is.
 * @param {Pass} pass
 * @param {any} node
 * @param {any} element The node, unclobbered.
 * @param {string} role
 * @param {Position} outer
 * @param {Position} position
 * @returns {boolean} Whether the descendants are part of something that is clicked as a whole.
 */
const addActions = (pass, node, element, role, outer, position) => {
  const { options, roles, only } = pass;
  if (only) {
    if (node === pass.shown) addCandidate(pass, [options.kind ?? "", ""], only, roleOf(only), position);
    return false;
  }
  const { rect, context } = position;
  const { handlers } = context;
  const tag = element.localName;
  const isRoot = tag === "body" || tag === "html";
  const types = (handlers.size && handlers.get(node)) || NO_TYPES;
  const hasOwnListeners = types.size > 0 && rect.width * rect.height <= MAX_LISTENER_AREA && !isRoot;
  const add = (/** @type {ActionKind} */ action) => addCandidate(pass, action, node, role, position);
  if (options.hover) {
    const reactsToPointer = (context.hovers.size && context.hovers.has(node)) || (hasOwnListeners && hasAny(types, HOVERS));
    if (reactsToPointer || isInvoker(element, tag)) add(["hover", ""]);
    // An element that listens to both hides again what it showed, when the pointer leaves.
    else if (hasOwnListeners && hasAny(types, POINTER_LEAVES)) add(["hover", "away"]);
  }
  if (roles.has(role)) {
    add(["click", ""]);
    if (hasOwnListeners) for (const action of listenerActions(element, types, true)) add(action);
    return true;
  }
  if (FIELD_ROLES.has(role) && options.outline) {
    add(["click", ""]); // agents fill all fields
    return outer.insideClicked;
  }
  if (FIELD_ROLES.has(role)) {
    const around = hasListeners || types.size ? typesAround(element, handlers) : types;
    if (!element.matches(":disabled")) for (const action of fieldActions(element, role, around, options)) add(action);
    return outer.insideClicked;
  }
  if (outer.insideClicked || isRoot || tag === "iframe") return outer.insideClicked;
  if (tag === "label" && element.control && !representsControl(element)) return true;
  const hasPointerCursor = position.hasPointerCursor && !outer.hasPointerCursor;
  const isItem = types.size > 0 && rect.width * rect.height <= MAX_LISTENER_AREA && listenerAround(types) !== "";
  const isClicked = isItem || (!types.has(HAS_ITEMS) && isClickable(node, element, tag, hasPointerCursor));
  if (isClicked) add(["click", ""]);
  else if (!types.has(HAS_ITEMS) && (hasPointerCursor || (hasOwnListeners && hasAny(types, CLICKS)))) position.pendingClick = pass.candidates.length;
  if (hasOwnListeners) {
    for (const action of listenerActions(element, types, isClicked || position.pendingClick >= 0)) add(action);
  }
  return false;
};
