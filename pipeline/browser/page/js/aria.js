// Provides `ariaSnapshot`: the accessibility snapshot that is stored of a page, in the format of Playwright's
// `aria_snapshot` (YAML), and in its order. It is what the browser's accessibility tree has: all that is rendered, also
// out of view, with the roles and names that actions are recorded by. Frames are leaves.

/** Roles of elements that `roleOf` leaves without one, by tag: HTML-AAM. @type {Record<string, string>} */
const ARIA_TAG_ROLES = {
  ul: "list", ol: "list", menu: "list", table: "table", tr: "row", thead: "rowgroup", tbody: "rowgroup", tfoot: "rowgroup",
  caption: "caption", dt: "term", dfn: "term", dd: "definition", article: "article", aside: "complementary", details: "group",
  fieldset: "group", optgroup: "group", figure: "figure", p: "paragraph", blockquote: "blockquote", hr: "separator",
  code: "code", em: "emphasis", strong: "strong", del: "deletion", ins: "insertion", sub: "subscript", sup: "superscript",
  mark: "mark", time: "time", math: "math", search: "search", iframe: "iframe", frame: "iframe",
};
/** Roles of elements that have one only with a name from their author. @type {Record<string, string>} */
const NAMED_TAG_ROLES = { section: "region", form: "form" };
/** Parts of lists and tables: they have no role if an attribute takes away that of the whole. */
const PARTS = new Set(["li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "tfoot"]);
/** Roles that are named by their content. */
const NAMED_BY_TEXT = new Set(
  ("button cell checkbox columnheader gridcell heading link menuitem menuitemcheckbox menuitemradio option radio row rowheader " +
    "switch tab tooltip treeitem").split(" "),
);
/** Roles that can have no name. */
const NAMELESS = new Set(
  "caption code definition deletion emphasis iframe insertion mark paragraph strong subscript suggestion superscript term time".split(" "),
);
/** States of ARIA by the roles that have them. @type {Record<string, Set<string>>} */
const STATE_ROLES = {
  checked: new Set("checkbox menuitemcheckbox menuitemradio option radio switch treeitem".split(" ")),
  disabled: new Set(
    ("application button checkbox columnheader combobox grid gridcell group link listbox menu menubar menuitem menuitemcheckbox " +
      "menuitemradio option radio radiogroup row rowheader scrollbar searchbox separator slider spinbutton switch tab tablist " +
      "textbox toolbar tree treegrid treeitem").split(" "),
  ),
  expanded: new Set(
    ("application button checkbox columnheader combobox gridcell link listbox menuitem menuitemcheckbox menuitemradio row " +
      "rowheader switch tab treeitem").split(" "),
  ),
  invalid: new Set(
    ("application checkbox columnheader combobox gridcell listbox radiogroup rowheader searchbox slider spinbutton switch " +
      "textbox tree").split(" "),
  ),
  level: new Set("heading listitem row treeitem".split(" ")),
  pressed: new Set(["button"]),
  selected: new Set("columnheader gridcell option row rowheader tab treeitem".split(" ")),
};

/**
 * A node of the snapshot: its key, its properties, and what is in it; `role` and `name` are those of the key.
 * @typedef {{ role: string, name: string, key: string, properties: [string, string][], children: (AriaNode | string)[] }} AriaNode
 */

const MAX_ARIA_NAME = 900; // Playwright leaves out longer ones

/** A text as the format has it: all of it, without characters that are not drawn. @param {string} text */
const wholeText = (text) => squeeze(text.replace(/[\u200b\u00ad]/g, ""), Infinity);

/**
 * The role of an element; empty if only its content counts.
 * @param {any} node
 * @param {any} element The node, unclobbered.
 */
const ariaRole = (node, element) => {
  const tag = element.localName;
  const explicit = explicitRole(element);
  if (explicit === "none" || explicit === "generic") return "";
  const role = explicit ?? (tag === "th" ? headerRole(element) : roleOf(node));
  if (role === "cell" && explicitRole(element.closest("table") ?? element)?.endsWith("grid")) return "gridcell";
  if (role) return role;
  if (tag === "header" || tag === "footer") return element.closest(SECTIONING) ? "" : tag === "header" ? "banner" : "contentinfo";
  if (typeof tag !== "string") return "";
  if (Object.hasOwn(NAMED_TAG_ROLES, tag)) return authorName(node, NAMED_TAG_ROLES[tag]) ? NAMED_TAG_ROLES[tag] : "";
  return Object.hasOwn(ARIA_TAG_ROLES, tag) ? ARIA_TAG_ROLES[tag] : "";
};
/** The role of a `<th>`, as the browser tells it from the cells beside it. @param {any} th */
const headerRole = (th) => {
  if (th.scope) return th.scope.startsWith("row") ? "rowheader" : "columnheader";
  const beside = [th.previousElementSibling, th.nextElementSibling];
  if (beside.every((cell) => cell?.localName === "th")) return "columnheader";
  const holdsData = (/** @type {any} */ cell) => cell?.localName === "td" && (cell.firstElementChild !== null || cell.textContent.trim() !== "");
  return beside.some(holdsData) ? "rowheader" : "columnheader";
};
/**
 * The accessible name. Unlike an action, which has to be found again, a field that nothing names has none.
 * @param {any} node
 * @param {any} element The node, unclobbered.
 * @param {string} role
 * @returns {string}
 */
const ariaName = (node, element, role) => {
  if (NAMELESS.has(role)) return "";
  const tag = element.localName;
  if (tag === "optgroup") return squeeze(element.label ?? ""); // not that of a drawing
  if (tag === "input" || (FIELD_ROLES.has(role) && !NAMED_BY_TEXT.has(role))) return givenName(node, role) ?? fieldText(element);
  const caption = tag === "figure" ? element.querySelector(":scope > figcaption") : null;
  if (caption) return authorName(node, role) || contentText(caption);
  return NAMED_BY_TEXT.has(role) ? nameOf(node, role) : authorName(node, role);
};
/**
 * The states of an element as the format writes them, each after a space.
 * @param {any} element
 * @param {string} role
 */
const ariaStates = (element, role) => {
  const tag = element.localName;
  const has = (/** @type {string} */ state) => STATE_ROLES[state].has(role);
  const isTrue = (/** @type {string} */ name) => ariaOf(element, name) === "true";
  const isBox = tag === "input" && (element.type === "checkbox" || element.type === "radio");
  let states = "";
  if (has("checked")) {
    const checked = isBox ? (element.indeterminate ? "mixed" : String(element.checked)) : ariaOf(element, "aria-checked");
    if (checked === "mixed") states += " [checked=mixed]";
    if (checked === "true") states += " [checked]";
  }
  if (has("disabled") && (isDisabled(element) || closestAcrossRoots(element, "[aria-disabled]")?.getAttribute("aria-disabled") === "true")) {
    states += " [disabled]";
  }
  if (has("expanded") && (isTrue("aria-expanded") || (tag === "summary" && element.parentElement?.open))) states += " [expanded]";
  const invalid = has("invalid") ? ariaOf(element, "aria-invalid")?.trim() || "false" : "false";
  if (invalid === "grammar" || invalid === "spelling") states += ` [invalid=${invalid}]`;
  else if (invalid !== "false") states += " [invalid]";
  if (has("level")) {
    const level = /^h[1-6]$/.test(tag) ? tag[1] : ariaOf(element, "aria-level") ?? "";
    if (/^[1-9]\d*$/.test(level)) states += ` [level=${level}]`;
  }
  const pressed = has("pressed") ? ariaOf(element, "aria-pressed") : null;
  if (pressed === "mixed") states += " [pressed=mixed]";
  if (pressed === "true") states += " [pressed]";
  if (has("selected") && (tag === "option" ? element.selected : isTrue("aria-selected"))) states += " [selected]";
  return states;
};
/**
 * The closest element that matches, out of shadow roots.
 * @param {any} element
 * @param {string} selector
 * @returns {any}
 */
const closestAcrossRoots = (element, selector) => {
  for (let inner = element; inner; inner = inner.getRootNode().host) {
    const found = inner.closest(selector);
    if (found) return found;
  }
  return null;
};
/** What is entered in a field; undefined if the element is none that takes text. @param {any} element */
const enteredText = (element) => {
  if (element.localName === "textarea") return element.value;
  if (element.localName !== "input" || ["checkbox", "radio", "file"].includes(element.type)) return undefined;
  return element.type === "password" ? "•".repeat(Math.min(element.value.length, MAX_MASKED)) : element.value;
};

/**
 * The accessibility snapshot of an element.
 * @param {any} root
 * @returns {string}
 */
const ariaSnapshot = (root) => {
  const visited = new Set();
  /** @type {AriaNode} */
  const top = { role: "", name: "", key: "", properties: [], children: [] };
  /**
   * @param {any} node
   * @param {AriaNode} parent
   * @param {boolean} showsText Whether texts beside the node are rendered.
   * @param {boolean} isPart Whether the role of the list or table around it was taken away.
   */
  const visit = (node, parent, showsText, isPart) => {
    if (visited.has(node)) return;
    if (node.nodeType === 3) {
      if (showsText) parent.children.push(node.data);
      return;
    }
    if (node.nodeType !== 1) return;
    visited.add(node);
    const element = unclobbered(node);
    const tag = element.localName;
    if (UNTEXTUAL.has(tag) || isAriaHidden(element) || element.inert) return;
    const style = styleOf(node);
    const { display } = style;
    if (display === "none" || style.interactivity === "inert") return;
    const isBoxless = display === "contents" || tag === "slot" || tag === "option" || tag === "optgroup";
    if (!isBoxless && !element.checkVisibility()) return; // in something closed
    const isShown = isBoxless || style.visibility === "visible";
    const takesRole = isPart && PARTS.has(tag);
    const role = isShown && !takesRole ? ariaRole(node, element) : "";
    /** @type {AriaNode | null} */
    let own = null;
    if (role) {
      const name = wholeText(ariaName(node, element, role));
      own = { role, name, key: role + (name ? ` ${nativeStringify(name)}` : "") + ariaStates(element, role), properties: [], children: [] };
      parent.children.push(own);
      if (role === "link" && element.hasAttribute("href")) {
        own.properties.push(["url", element.getAttribute("href").replace(/^(data:[^,]*,).*$/s, "$1…")]);
      }
      const placeholder = role === "textbox" ? element.getAttribute("placeholder") : null;
      if (placeholder !== null && placeholder !== name) own.properties.push(["placeholder", placeholder]);
    }
    const into = own ?? parent;
    const entered = enteredText(element);
    if (entered !== undefined) into.children.push(entered);
    else visitContent(node, element, into, isShown, takesRole || explicitRole(element) === "none");
    if (own) joinTexts(own);
  };
  /**
   * @param {any} node
   * @param {any} element The node, unclobbered.
   * @param {AriaNode} into
   * @param {boolean} isShown
   * @param {boolean} isPart
   */
  const visitContent = (node, element, into, isShown, isPart) => {
    const space = styleOf(node).display !== "inline" || element.localName === "br" ? " " : "";
    const generates = isShown && mayGenerate(element.ownerDocument);
    const { all, byOwner } = ownedIn(element.getRootNode());
    into.children.push(space);
    if (generates) into.children.push(pseudoText(node, "::before", true));
    if (!FRAME_TAGS.has(element.localName)) {
      for (const child of drawnNodes(node, element)) if (!all.has(child)) visit(child, into, isShown, isPart);
    }
    for (const child of byOwner.get(node) ?? []) visit(child, into, isShown, false);
    if (generates) into.children.push(pseudoText(node, "::after", true));
    into.children.push(space);
  };
  withTexts({ includesSigns: true, limit: MAX_ARIA_NAME }, () => visit(root, top, false, false));
  joinTexts(top);
  /** @type {string[]} */
  const lines = [];
  writeChildren(top, "", lines);
  return lines.join("\n");
};
/**
 * Join texts that follow each other. A text that repeats the name of the node, and is all that is in it, is left out.
 * @param {AriaNode} node
 */
const joinTexts = (node) => {
  /** @type {AriaNode["children"]} */
  const joined = [];
  let text = "";
  const flush = () => {
    const whole = wholeText(text);
    if (whole) joined.push(whole);
    text = "";
  };
  for (const child of node.children) {
    if (typeof child === "string") {
      text += child;
      continue;
    }
    flush();
    joined.push(child);
  }
  flush();
  node.children = joined.length === 1 && joined[0] === node.name ? [] : joined;
};

/** Texts that YAML would read as something else than a text. */
const UNPLAIN =
  // eslint-disable-next-line no-control-regex -- YAML has no plain control characters
  /^$|^\s|\s$|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\n\r{}`]|:(?:\s|$)|\s#|^[-&*\],?!>|@"'#%[]|^(?:y|n|yes|no|true|false|on|off|null|~)$|^[-+]?\.(?:inf|nan)$/i;
/** @param {string} text */
const isPlain = (text) => !UNPLAIN.test(text) && Number.isNaN(Number(text));
/** @param {string} text */
const yamlKey = (text) => (isPlain(text) ? text : `'${text.replace(/'/g, "''")}'`);
/** @param {string} text */
const yamlValue = (text) =>
  isPlain(text) ? text : nativeStringify(text).replace(/[\x7f-\x9f]/g, (character) => `\\x${character.charCodeAt(0).toString(16)}`);
/**
 * @param {AriaNode} node
 * @param {string} indent
 * @param {string[]} lines
 */
const writeChildren = (node, indent, lines) => {
  for (const child of node.children) {
    if (typeof child === "string") {
      lines.push(`${indent}- text: ${yamlValue(child)}`);
      continue;
    }
    const { key, properties, children } = child;
    const line = `${indent}- ${yamlKey(key)}`;
    if (!properties.length && !children.length) lines.push(line);
    else if (!properties.length && children.length === 1 && typeof children[0] === "string") lines.push(`${line}: ${yamlValue(children[0])}`);
    else {
      lines.push(`${line}:`);
      for (const [name, value] of properties) lines.push(`${indent}  - /${name}: ${yamlValue(value)}`);
      writeChildren(child, `${indent}  `, lines);
    }
  }
};
