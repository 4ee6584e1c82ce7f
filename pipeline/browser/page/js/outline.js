// Provides `outlineOf`: the accessibility tree of everything that a pass found exposed, in the order of the flat tree.
//
// A row is `[depth, role, name, states, candidate]`. Elements without a role and without an action have no row; their
// children take their place. Text that continues within one line is one row.

/** Roles of elements that `roleOf` leaves without one: the part of HTML-AAM for structure and text. @type {Record<string, string>} */
const STRUCTURE_ROLES = {
  ul: "list", ol: "list", menu: "list", table: "table", tr: "row", thead: "rowgroup", tbody: "rowgroup", tfoot: "rowgroup",
  caption: "caption", dl: "DescriptionList", dt: "DescriptionListTerm", dd: "DescriptionListDetail", form: "form",
  article: "article", aside: "complementary", fieldset: "group", details: "group", optgroup: "group", figure: "figure",
  figcaption: "Figcaption", legend: "Legend", p: "paragraph", blockquote: "blockquote", hr: "separator", iframe: "Iframe",
  frame: "Iframe", embed: "Iframe", object: "Iframe", search: "search", video: "Video", audio: "Audio", canvas: "Canvas",
  label: "LabelText", address: "group", pre: "code",
};
/** Roles whose name comes from the content, besides those of elements that can be acted on. */
const NAMED_BY_CONTENT = new Set(["heading", "img", "tooltip", "menuitem", "option", "tab", "treeitem", "progressbar", "meter"]);
const SECTIONING = "article, aside, main, nav, section";
const MAX_OPTIONS = 2_000; // of one list
const MAX_PAGE_OPTIONS = 20_000; // of all lists of a page
const MAX_OUTLINE_TEXT = 20_000; // characters of one text or value
const MAX_ICON_WORDS = 4; // classes that stand for a missing name

/**
 * The role of an element for the outline; empty if only its content counts.
 * @param {any} node
 * @param {any} element The node, unclobbered.
 */
const outlineRole = (node, element) => {
  const explicit = explicitRole(element);
  if (explicit === "none" || explicit === "generic") return "";
  if (explicit === "region" || explicit === "form") return authorName(node, explicit) ? explicit : "";
  const role = roleOf(node);
  if (role) return role;
  const tag = element.localName;
  if (tag === "header") return element.closest(SECTIONING) ? "" : "banner";
  if (tag === "footer") return element.closest(SECTIONING) ? "" : "contentinfo";
  if (tag === "section") return authorName(node, "region") ? "region" : "";
  return typeof tag === "string" && Object.hasOwn(STRUCTURE_ROLES, tag) ? STRUCTURE_ROLES[tag] : "";
};
/**
 * The name of an element whose content does not name it.
 * @param {any} node
 * @param {string} role
 * @returns {string}
 */
const authorName = (node, role) => (givenName(node, role) ?? "") || squeeze(unclobbered(node).title || "");

const ARIA_STATES = ["expanded", "selected", "pressed", "checked", "current", "sort", "busy", "invalid"];
const VALUED = new Set(["slider", "spinbutton", "progressbar", "meter", "scrollbar", "separator"]);
/** @param {any} element */
const activeElementOf = (element) => element.getRootNode().activeElement;
/**
 * The states and properties of an element.
 * @param {any} element
 * @param {string} role
 * @param {Candidate | undefined} candidate
 * @returns {[string, string][]}
 */
const statesOf = (element, role, candidate) => {
  /** @type {[string, string][]} */
  const states = [];
  const add = (/** @type {string} */ key, /** @type {unknown} */ value) => states.push([key, squeeze(String(value), MAX_OUTLINE_TEXT)]);
  const tag = element.localName;
  if (role === "heading") add("level", ariaOf(element, "aria-level") || tag.slice(1));
  if (tag === "input" && (element.type === "checkbox" || element.type === "radio")) {
    add("checked", element.indeterminate ? "mixed" : element.checked);
  } else if (tag === "select") {
    const chosen = Array.from(element.selectedOptions, optionName);
    if (chosen.length) add("value", chosen.join("; "));
  } else if (tag === "input" && element.type === "password") {
    if (element.value) add("value", "•".repeat(Math.min(element.value.length, 20)));
  } else if (tag === "textarea" || (tag === "input" && role !== "button")) {
    if (element.value) add("value", element.value);
  } else if (role === "textbox" || role === "searchbox" || role === "combobox") {
    const text = contentText(element);
    if (text) add("value", text);
  }
  if (VALUED.has(role)) {
    const value = ariaOf(element, "aria-valuetext") ?? ariaOf(element, "aria-valuenow");
    if (value) add("value", value);
    else if (tag === "progress" || tag === "meter") add("value", element.value);
  }
  if (tag === "details") add("expanded", element.open);
  if (tag === "summary" && element.parentElement?.localName === "details") add("expanded", element.parentElement.open);
  for (const key of ARIA_STATES) {
    const value = ariaOf(element, `aria-${key}`);
    if (value && value !== "undefined" && !(value === "false" && (key === "current" || key === "busy" || key === "invalid"))) {
      if (!states.some(([known]) => known === key)) add(key, value);
    }
  }
  const classes = candidate && !candidate.name ? candidate.icon.split(" ").filter((word) => /\p{L}/u.test(word)) : [];
  if (classes.length) add("icon", classes.slice(-MAX_ICON_WORDS).join(" ")); // the icon itself comes last
  if (candidate ? candidate.disabled : isDisabled(element)) add("disabled", true);
  if (candidate?.covered) add("covered", true);
  if (element.required || ariaOf(element, "aria-required") === "true") add("required", true);
  if (element.readOnly || ariaOf(element, "aria-readonly") === "true") add("readonly", true);
  if (element.multiple || ariaOf(element, "aria-multiselectable") === "true") add("multiselectable", true);
  if (hasPopup(element)) add("hasPopup", ariaOf(element, "aria-haspopup"));
  if (element === activeElementOf(element) && element.localName !== "body") add("focused", true);
  if (ariaOf(element, "aria-modal") === "true" || (tag === "dialog" && element.matches(":modal"))) add("modal", true);
  return states;
};

/**
 * Whether an element is a box of one pixel, out of the flow, that cuts off its content, wherever it is. Pages write for
 * screen readers like this: the title of a list, what stars or a crossed-out price mean.
 * @param {Position} position
 */
const isForReaders = ({ style }) =>
  style !== null && style.width === "1px" && style.height === "1px" && style.overflowX !== "visible" &&
  (style.position === "absolute" || style.position === "fixed") && style.visibility === "visible";
/**
 * Whether an element has no area, although its content may have: floats, positioned children, what overflows.
 * @param {Position} position
 */
const hasNoArea = ({ style, rect, inSvg }) =>
  style !== null && style.display !== "contents" && (rect.width === 0 || rect.height === 0) && style.visibility === "visible" && !inSvg;

/** @param {any} display */
const isInlineDisplay = (display) => display.startsWith("inline") || display === "contents";

/**
 * @param {Pass} pass
 * @returns {OutlineRow[]}
 */
const outlineOf = (pass) => {
  /** @type {OutlineRow[]} */
  const rows = [];
  /** @type {Map<any, number>} */
  const clicks = new Map();
  /** Numbers of the candidates that are controls of an element, see carousels.js. @type {Map<any, number[]>} */
  const controls = new Map();
  pass.candidates.forEach((candidate, i) => {
    const node = pass.elements[i];
    // A double click is the click on what takes no other: files, nodes of a diagram.
    const isOnlyDoubleClick = candidate.kind === "dblclick" && !clicks.has(node); // it follows a click on the same element
    if ((candidate.kind !== "click" && !isOnlyDoubleClick) || !node) return;
    if (!isControl(candidate)) clicks.set(node, i);
    else controls.set(node, [...(controls.get(node) ?? []), i]);
  });
  let continues = false; // whether the last row is text that the next text continues
  let gap = ""; // whitespace between the two

  const addText = (/** @type {string} */ data, /** @type {number} */ depth) => {
    const text = squeeze(data, MAX_OUTLINE_TEXT);
    const last = rows[rows.length - 1];
    const joins = continues && last?.[1] === "StaticText" && last[0] === depth;
    if (!text) {
      if (joins && data) gap = " ";
      return;
    }
    const space = joins ? gap || (/^\s/.test(data) ? " " : "") : "";
    if (joins && last[2].length + text.length < 4 * MAX_TEXT) last[2] += space + text;
    else rows.push([depth, "StaticText", text, [], -1]);
    continues = true;
    gap = /\s$/.test(data) ? " " : "";
  };
  const isOperable = (/** @type {any} */ node) => pass.roles.has(roleOf(node)) || FIELD_ROLES.has(roleOf(node));
  let optionsLeft = MAX_PAGE_OPTIONS;
  /**
   * Add a row for each option of a list that can be chosen. It has the candidate of the list.
   * @param {any} list A `<select>` or `<datalist>`.
   * @param {number} depth
   * @param {number} candidate
   */
  const addOptions = (list, depth, candidate) => {
    const isSelect = list.localName === "select";
    const options = namedOptions(list).filter(([option]) => isSelect ? !isHiddenOption(option) : option.value && !option.disabled);
    const added = options.slice(0, Math.min(MAX_OPTIONS, optionsLeft));
    optionsLeft -= added.length;
    let lastGroup = "";
    for (const [option, name] of added) {
      /** @type {[string, string][]} */
      const states = [];
      const box = option.parentElement;
      const group = box?.localName === "optgroup" ? squeeze(box.label) : "";
      if (group && group !== lastGroup) states.push(["group", group]);
      lastGroup = group;
      if (isSelect && option.selected) states.push(["selected", "true"]);
      if (isSelect && isDisabledOption(option)) states.push(["disabled", "true"]);
      rows.push([depth, "option", isSelect ? name : squeeze(option.value), states, candidate]);
    }
    const more = options.length - added.length;
    if (more > 0) rows.push([depth, "option", "", [["more", String(more)]], -1]);
  };
  const walkChildren = (/** @type {any} */ parent, /** @type {any} */ node, /** @type {number} */ depth, forReaders = false) => {
    const shadow = shadowOf(node);
    let children = (shadow ?? parent).childNodes;
    if (parent.localName === "slot") {
      const assigned = parent.assignedNodes({ flatten: true });
      if (assigned.length) children = assigned;
    }
    const position = pass.positions?.get(node);
    // Not: outside the page, clipped, behind a dialog, closed.
    const showsText =
      ((position?.exposed || (forReaders && position?.style?.visibility === "visible")) && !hidesContent(parent)) ||
      (position?.inFront && position.style?.display === "contents");
    const generates = showsText && mayGenerate(node.ownerDocument);
    if (generates) addText(pseudoText(node, "::before", false), depth);
    for (const child of children) if (showsText || child.nodeType !== 3) walk(child, depth, forReaders);
    if (generates) addText(pseudoText(node, "::after", false), depth);
  };
  /** Add the texts of a drawing without links, which the pass does not enter: a chart with a name is read by its labels. */
  const addDrawnTexts = (/** @type {any} */ svg, /** @type {number} */ depth) => {
    for (const text of svg.querySelectorAll("text")) {
      continues = false;
      if (isSeen(text) && !text.closest("[aria-hidden=true]")) addText(text.textContent, depth);
    }
  };
  const walkFrame = (/** @type {any} */ frame, /** @type {number} */ depth) => {
    const root = documentIn(frame)?.documentElement;
    const place = pass.crossOrigin.get(frame);
    if (root) walk(root, depth);
    else if (place) place.outline = { at: rows.length, depth };
  };
  const walk = (/** @type {any} */ node, /** @type {number} */ depth, isInForReaders = false) => {
    if (node.nodeType === 3) {
      addText(node.data, depth);
      return;
    }
    if (node.nodeType !== 1) return;
    const element = unclobbered(node);
    const tag = element.localName;
    if (tag === "br" || tag === "wbr") {
      if (tag === "br") continues = false;
      return;
    }
    const position = pass.positions?.get(node);
    if (!position) {
      // Whatever is not rendered, hidden or inert was not entered by the pass. A slot is, and has no box.
      return;
    }
    const index = clicks.get(node);
    const candidate = index === undefined ? undefined : pass.candidates[index];
    const inline = isInlineDisplay(position.style?.display ?? "inline");
    const forReaders = position.inFront && (isInForReaders || isForReaders(position));
    if (forReaders && !candidate && isOperable(node)) return; // a link that skips to the content, until it has the focus
    const isBare = !position.exposed && !candidate && !forReaders && hasNoArea(position);
    let role = position.inFront && (position.exposed || candidate || forReaders || isBare) ? outlineRole(node, element) : "";
    if (candidate && !role) role = "generic";
    if (!inline) continues = false;
    if (!position.inFront && !isWithin(position.context.modal, node)) return;
    let inner = depth;
    const first = rows.length;
    if (role) {
      const control = candidate && representsControl(element) ? element.control : null; // it is what a person sees of it
      if (control) role = roleOf(control);
      let named = candidate ? candidate.name : NAMED_BY_CONTENT.has(role) ? nameOf(node, role) : authorName(node, role);
      if (control) named ||= nameOf(control, role);
      rows.push([depth, role, named, statesOf(control ?? element, role, candidate), index ?? -1]);
      continues = false;
      inner += 1;
    }
    for (const at of controls.get(node) ?? []) {
      const { role: own, name, disabled } = pass.candidates[at];
      rows.push([inner, own, name, disabled ? [["disabled", "true"]] : [], at]);
      continues = false;
    }
    const suggestions = tag === "input" && !element.readOnly ? element.list : null;
    if (tag === "select") addOptions(element, inner, index ?? -1);
    else if (suggestions) addOptions(suggestions, inner, index ?? -1);
    else if (FRAME_TAGS.has(tag)) walkFrame(element, inner);
    else if (tag === "img" && element.useMap) {
      for (const area of areasOf(element)) {
        const at = clicks.get(area);
        if (at !== undefined) rows.push([inner, "link", pass.candidates[at].name, [], at]);
      }
    } else if (tag === "svg" && !position.context.activeSvgs.has(node)) {
      if (position.exposed) addDrawnTexts(element, inner);
    } else if (!LEAF_TAGS.has(tag) || tag === "svg") {
      // The content of a field is its value, or a script's own drawing of it.
      if (!(element.isContentEditable && role === "textbox")) walkChildren(element, node, inner, forReaders);
    }
    if (isBare && role && rows.length === first + 1) rows.pop(); // closed, or empty
    if (role || !inline) continues = false;
  };
  const root = document.documentElement;
  if (root) walk(root, 0);
  return rows;
};
/** Where the window is on the page, and the size of both, in CSS pixels. */
const viewOf = () => {
  const root = document.scrollingElement ?? document.documentElement;
  return [
    Math.round(window.scrollX), Math.round(window.scrollY), window.innerWidth, window.innerHeight,
    root?.scrollWidth ?? 0, root?.scrollHeight ?? 0,
  ];
};
