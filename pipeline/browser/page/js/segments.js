// Provides `addTexts`: the visible texts of a page, one segment for each element that is read as a whole.

const TEXT_ROLES = new Set(["heading", "columnheader", "rowheader", "cell", "listitem", "status"]);

const HIDDEN = "hidden"; // `HIDDEN_ROLE` in index/graph

/**
 * @param {Pass} pass
 * @param {string} text
 * @param {string} role
 * @param {Rect} rect
 * @param {Point} origin
 */
const addSegment = ({ options, segments: shown, hidden, counts }, text, role, rect, { x, y }) => {
  const clean = squeeze(text);
  if (!clean) return;
  const segments = role === HIDDEN ? hidden : shown;
  if (segments.length >= options.maxSegments) counts.segmentsCut += 1;
  else {
    segments.push([
      clean, role, Math.round(rect.left + x), Math.round(rect.top + y), Math.round(rect.width), Math.round(rect.height),
    ]);
  }
};

/**
 * Whether an element contains only inline elements, so that its text is one segment.
 * @param {Pass} pass
 * @param {any} element
 * @returns {boolean}
 */
const isInlineOnly = (pass, element) => {
  let answer = pass.inlineOnly.get(element);
  if (answer === undefined) pass.inlineOnly.set(element, (answer = hasOnlyInlineChildren(pass, element)));
  return answer;
};
/**
 * @param {Pass} pass
 * @param {any} element
 */
const hasOnlyInlineChildren = (pass, element) => {
  for (let original = unclobbered(element).firstElementChild; original; original = unclobbered(original).nextElementSibling) {
    const child = unclobbered(original);
    const tag = child.localName;
    if (UNRENDERED_TAGS.has(tag)) continue;
    if (LEAF_TAGS.has(tag) || tag === "img" || tag === "iframe" || shadowOf(child)) return false;
    const { display } = styleOf(original);
    const isShown = display !== "none";
    if (isShown && !display.startsWith("inline") && display !== "contents") return false;
    const role = roleOf(original);
    if (pass.roles.has(role) || FIELD_ROLES.has(role)) return false;
    if (isShown && !isInlineOnly(pass, original)) return false;
  }
  return true;
};

/**
 * Whether the browser skips the content of an element until it is opened, or until something in it is found: a closed
 * `<details>` (except its summary), and `hidden=until-found`.
 * @param {any} element
 */
const hidesContent = (element) => {
  if (element.localName === "details") {
    return !element.open && getComputedStyle(element, "::details-content").contentVisibility === "hidden";
  }
  return element.hidden === "until-found" && styleOf(element).contentVisibility === "hidden";
};
/**
 * Add the texts of such an element: one for each block, at the place of the element.
 * @param {Pass} pass
 * @param {any} element
 * @param {Rect} rect
 * @param {Point} origin
 */
const addHiddenTexts = (pass, element, rect, origin) => {
  let text = "";
  const end = () => {
    addSegment(pass, text, HIDDEN, rect, origin);
    text = "";
  };
  const walk = (/** @type {Iterable<any>} */ nodes, /** @type {boolean} */ isShown) => {
    for (const node of nodes) {
      if (node.nodeType === 3 && isShown) text += node.data;
      if (node.nodeType !== 1) continue;
      const child = unclobbered(node);
      const { display, visibility, contentVisibility } = styleOf(node);
      if (UNTEXTUAL.has(child.localName) || child.getAttribute("aria-hidden") === "true" || child.inert) continue;
      if (display === "none" || (contentVisibility === "hidden" && !hidesContent(node))) continue;
      const isBlock = !isInlineDisplay(display) || child.localName === "br";
      if (isBlock) end();
      if (visibility === "visible" && child.localName === "img") text += child.alt;
      const assigned = child.localName === "slot" ? child.assignedNodes() : [];
      walk(assigned.length ? assigned : (shadowOf(node) ?? child).childNodes, visibility === "visible");
      if (isBlock) end();
    }
  };
  const summary = element.localName === "details" ? element.querySelector(":scope > summary") : null;
  walk([...element.childNodes].filter((node) => node !== summary), true);
  end();
};

/**
 * Add the texts of an element.
 * @param {Pass} pass
 * @param {any} element
 * @param {string} role
 * @param {Rect} rect
 * @param {Point} origin
 * @returns {boolean} Whether the texts of its descendants are included.
 */
const addTexts = (pass, element, role, rect, origin) => {
  if (pass.roles.has(role) || FIELD_ROLES.has(role) || role === "img") {
    addSegment(pass, nameOf(element, role), role, rect, origin);
    return true;
  }
  if (!shadowOf(element) && isInlineOnly(pass, element) && !hidesContent(element)) {
    addSegment(pass, contentText(element), role || "text", rect, origin);
    return true;
  }
  if (hidesContent(element)) return false;
  for (let node = unclobbered(element).firstChild; node; node = node.nextSibling) {
    if (node.nodeType === 3) addSegment(pass, node.data, TEXT_ROLES.has(role) ? role : "text", rect, origin);
  }
  return false;
};
