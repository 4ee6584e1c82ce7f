// Provides `addTexts`: the visible texts of a page, one segment for each element that is read as a whole.

const TEXT_ROLES = new Set(["heading", "columnheader", "rowheader", "cell", "listitem", "status"]);

/**
 * @param {Pass} pass
 * @param {string} text
 * @param {string} role
 * @param {Rect} rect
 * @param {Point} origin
 */
const addSegment = ({ options, segments, counts }, text, role, rect, { x, y }) => {
  const clean = squeeze(text);
  if (!clean) return;
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
  if (!shadowOf(element) && isInlineOnly(pass, element)) {
    addSegment(pass, contentText(element), role || "text", rect, origin);
    return true;
  }
  for (let node = unclobbered(element).firstChild; node; node = node.nextSibling) {
    if (node.nodeType === 3) addSegment(pass, node.data, TEXT_ROLES.has(role) ? role : "text", rect, origin);
  }
  return false;
};
