// Provides the controls that style sheets give to boxes that scroll: `::scroll-button()` and `::scroll-marker`. The browser
// draws them and lists them in its accessibility tree; they are in no document and have no box that scripts can read. Their
// path is that of their element and their own name: `/html[1]/body[1]/div[1]::scroll-button(right)`.
//
// Pressing one scrolls the box, and this is how they are pressed here.

const BUTTON_SHARE = 0.875; // of the box, by which Chromium's buttons scroll
/**
 * @typedef {object} ScrollControl
 * @property {string} pseudo
 * @property {string} role
 * @property {string} name
 * @property {boolean} disabled Whether pressing it scrolls no further.
 */
/**
 * The scroll buttons of a box.
 * @param {any} box
 * @returns {ScrollControl[]}
 */
const scrollButtons = (box) =>
  Object.keys(DIRECTIONS).flatMap((direction) => {
    const pseudo = `::scroll-button(${direction})`;
    const style = getComputedStyle(box, pseudo);
    // Chromium returns the style of another button for one that the box does not have; that has no width.
    if (!CSS.supports("selector(::scroll-button(*))") || style.width === "auto" || style.visibility !== "visible") return [];
    const [x, y] = DIRECTIONS[direction];
    const position = x ? box.scrollLeft : box.scrollTop;
    const end = x ? box.scrollWidth - box.clientWidth : box.scrollHeight - box.clientHeight;
    const disabled = x + y < 0 ? position <= 0 : position >= end - 1;
    return [{ pseudo, role: "button", name: squeeze(generatedText(style.content)), disabled }];
  });
/**
 * Role of the scroll markers of a box; empty if it has none.
 * @param {CSSStyleDeclaration} style
 */
const markerRole = ({ scrollMarkerGroup: group }) => (!group || group === "none" ? "" : group.includes("tabs") ? "tab" : "link");
/**
 * The box whose markers include that of an element.
 * @param {any} element
 * @returns {any}
 */
const markedBox = (element) => {
  let box = parentThroughRoots(element);
  while (box && !markerRole(getComputedStyle(box))) box = parentThroughRoots(box);
  return box;
};
/**
 * How far a box must scroll so that it begins with an element.
 * @param {any} box
 * @param {any} element
 */
const distanceTo = (box, element) => {
  const [inner, outer] = [element.getBoundingClientRect(), box.getBoundingClientRect()];
  return [inner.left - outer.left - box.clientLeft, inner.top - outer.top - box.clientTop];
};
/**
 * The scroll marker of an element.
 * @param {any} element
 * @returns {ScrollControl[]}
 */
const scrollMarkers = (element) => {
  const pseudo = "::scroll-marker";
  const { content, display, visibility } = getComputedStyle(element, pseudo);
  if (!content || content === "normal" || content === "none" || display === "none" || visibility !== "visible") return [];
  const box = markedBox(element);
  if (!box) return [];
  const disabled = distanceTo(box, element).every((distance) => Math.abs(distance) < 1);
  return [{ pseudo, role: markerRole(getComputedStyle(box)), name: squeeze(generatedText(content)), disabled }];
};
/**
 * Add the controls of an element as candidates. They are no part of the structure.
 * @param {Pass} pass
 * @param {any} node
 * @param {Position} position
 * @param {ScrollControl[]} controls
 */
const addControls = (pass, node, position, controls) => {
  const { rect, context } = position;
  const { origin } = context;
  for (const { pseudo, role, name, disabled } of controls) {
    if (disabled && !pass.options.outline) continue; // what becomes usable in another state is new there
    const place = addPlace(pass, position, pseudo);
    pass.unexposed.push(place);
    pass.candidates.push({
      kind: "click", value: "", role, name, method: "", handler: "", icon: "", place, frame: context.number, css: "", target: "",
      tag: pseudo, disabled, submits: "", form: "", download: false, covered: false, listener: "", nth: 0,
      box: [Math.round(rect.left + origin.x), Math.round(rect.top + origin.y), Math.round(rect.width), Math.round(rect.height)],
    });
    pass.elements.push(node);
  }
};

/**
 * A control of an element by its name.
 * @param {any} element
 * @param {string} pseudo
 * @returns {ScrollControl | undefined}
 */
const controlOf = (element, pseudo) =>
  [...scrollMarkers(element), ...scrollButtons(element)].find((control) => control.pseudo === pseudo);
/** Whether a candidate is such a control. @param {Candidate} candidate */
const isControl = ({ tag }) => tag.startsWith("::");
/**
 * Scroll as a press of a control does.
 * @param {any} element
 * @param {string} pseudo
 */
const pressControl = (element, pseudo) => {
  noteAction();
  const [x, y] = DIRECTIONS[/\((.*)\)/.exec(pseudo)?.[1] ?? ""] ?? [0, 0];
  const box = x || y ? element : markedBox(element);
  const [left, top] = x || y ? [x * BUTTON_SHARE * box.clientWidth, y * BUTTON_SHARE * box.clientHeight] : distanceTo(box, element);
  box.scrollBy({ left, top, behavior: "instant" });
  return { isSet: true, isScrolled: true };
};
