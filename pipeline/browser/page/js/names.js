// Provides accessible names (AccName 1.2, HTML-AAM, SVG-AAM), as the browser computes them for its accessibility tree: by
// references, labels, content, titles. Where they differ from the browser's on purpose, tests/sites/naming.py says why.

/**
 * The accessible name of an element. Elements that are clicked without having a role are named by their content as well.
 * @param {any} node
 * @param {string} role
 * @returns {string}
 */
const nameOf = (node, role) => {
  let name = names?.get(node);
  if (name === undefined) {
    name = computeName(node, role);
    names?.set(node, name);
  }
  return name;
};
/**
 * @param {any} node
 * @param {string} role
 * @returns {string}
 */
const computeName = (node, role) => {
  const element = unclobbered(node);
  const given = givenName(node, role);
  if (given !== null) return given;
  if (FIELD_ROLES.has(role) && role !== "checkbox" && role !== "radio") return fieldText(element) || squeeze(element.name || "");
  if (element.localName === "option") return optionText(element);
  if (role === "img") return squeeze(element.title || ""); // its content is the picture
  if (element.localName === "input") return squeeze(element.title || element.name || "");
  const content = textIn(node, collecting(node, role)) || textIn(node, collecting(node, role, { includesSigns: true }));
  return content || squeeze(element.title || "");
};
/**
 * The name that references, attributes, labels, or a caption give an element; null if only its content can name it.
 * @param {any} node
 * @param {string} role
 * @returns {string | null}
 */
const givenName = (node, role) => {
  const element = unclobbered(node);
  const given = referencedText(element, null) || squeeze(ariaOf(element, "aria-label") ?? "") || labelText(element);
  return given || nativeText(node, element, role, styleOf(node));
};

/**
 * The element that a reference to a shadow host means.
 * @param {any} element
 * @returns {any}
 */
const referenceTargetOf = (element) => {
  const root = shadowOf(element);
  const target = root?.referenceTarget ? root.getElementById(root.referenceTarget) : null;
  return target ? referenceTargetOf(target) : element;
};
/**
 * The text of the elements that label an element. Ids are resolved within its root; scripts can refer to elements of roots
 * around it, and the browser says which ones count.
 * @param {any} element
 * @param {Collecting | null} how
 * @returns {string}
 */
const referencedText = (element, how) => {
  const hasAttribute = element.hasAttribute("aria-labelledby"); // also, empty, if a script has set elements
  const references = (hasAttribute && element.ariaLabelledByElements) || internalsOf(element)?.ariaLabelledByElements;
  if (!references) return "";
  const texts = [];
  for (const reference of references) {
    const node = referenceTargetOf(reference);
    const root = unclobbered(node);
    if (root.inert) continue;
    const more = { isReferenced: true, includesHidden: isHidden(node, root), visited: how?.visited ?? null };
    const own = collecting(node, roleOf(node) || "generic", more);
    texts.push(alternativeOf(node, root, styleOf(node), own) ?? textIn(node, own));
  }
  return squeeze(texts.join(" "), extent.limit);
};

/** Labels by the element that they label, by root. @type {WeakMap<any, Map<any, any[]>> | null} */
let labelsByRoot = null;
/**
 * @param {any} root
 * @returns {Map<any, any[]>}
 */
const labelsIn = (root) => {
  let found = labelsByRoot?.get(root);
  if (!found) {
    found = new Map();
    for (const label of root.querySelectorAll?.("label") ?? []) {
      const { control } = label;
      if (control) found.set(control, [...(found.get(control) ?? []), label]);
    }
    labelsByRoot?.set(root, found);
  }
  return found;
};
/** @type {any[]} */
const NO_LABELS = [];
/**
 * The `<label>`s of an element, also those of the shadow host whose reference target it is.
 * @param {any} element
 * @returns {any[]}
 */
const labelsOf = (element) => {
  const root = element.getRootNode();
  const labels = labelsIn(root).get(element) ?? NO_LABELS;
  const isTarget = root.referenceTarget && root.referenceTarget === element.id;
  return isTarget ? [...labels, ...labelsOf(root.host)] : labels;
};
/**
 * @param {any} element
 * @returns {string}
 */
const labelText = (element) => {
  const labels = labelsOf(element);
  if (labels.length === 0) return "";
  const texts = labels.filter((label) => !isHidden(label, label)).map((label) => {
    const own = collecting(label, "generic", { control: element });
    return alternativeOf(label, label, styleOf(label), own) ?? textIn(label, own);
  });
  return squeeze(texts.join(" "), extent.limit);
};

/** @type {Record<string, string>} */
const CAPTIONS = { table: "caption", fieldset: "legend" };
/** Names that browsers give buttons without one. @type {Record<string, string>} */
const DEFAULT_NAMES = { submit: "Submit", reset: "Reset", image: "Submit" };
/**
 * The name that the language of the element defines, empty if it defines that there is none; null if it says nothing.
 * @param {any} node
 * @param {any} element The node, unclobbered.
 * @param {string} role
 * @param {CSSStyleDeclaration} style
 * @returns {string | null}
 */
const nativeText = (node, element, role, style) => {
  const tag = element.localName;
  if (style.content !== "normal" && style.content !== "" && style.content !== "none") return squeeze(generatedText(style.content));
  if (tag === "img" || tag === "area") return explicitRole(element) === "none" ? "" : squeeze(element.getAttribute("alt") ?? element.title);
  if (tag === "input" && INPUT_ROLES[element.type] === "button") return squeeze(inputButtonText(element));
  if (tag === "iframe") return squeeze(element.title);
  if (element.namespaceURI === SVG) return svgTitle(element);
  const caption = Object.hasOwn(CAPTIONS, tag) && element.querySelector(`:scope > ${CAPTIONS[tag]}`);
  if (caption) return contentText(caption) || null;
  return (tag === "table" && squeeze(element.getAttribute("summary") ?? "")) || null;
};
/** @param {any} element */
const inputButtonText = (element) => {
  const { type } = element;
  if (type === "file") return element.multiple ? "Choose Files" : "Choose File";
  if (type === "image") return element.alt || element.value || element.title || DEFAULT_NAMES.image;
  return element.value || (element.hasAttribute("value") ? "" : DEFAULT_NAMES[type]) || element.title;
};
/** The name of a field that nothing labels. @param {any} element @returns {string} */
const fieldText = (element) =>
  squeeze(element.getAttribute("title") || element.getAttribute("placeholder") || ariaOf(element, "aria-placeholder") || "");
/**
 * The title of an SVG element.
 * @param {any} element
 * @returns {string | null}
 */
const svgTitle = (element) =>
  squeeze(element.querySelector(":scope > title")?.textContent || element.getAttribute("xlink:title") || "") || null;
/**
 * The title of what an SVG `<use>` draws, in the same document.
 * @param {any} element
 * @returns {string}
 */
const usedTitle = (element) => {
  const href = element.getAttribute("href") ?? element.getAttribute("xlink:href") ?? "";
  const used = href.startsWith("#") ? element.getRootNode().getElementById?.(href.slice(1)) : null;
  return (used && svgTitle(used)) ?? "";
};

// ---- options of lists ----

/**
 * The text of an option. A list that pages style (`appearance: base-select`) draws the elements in its options, others only
 * their text. The list may be closed, and nothing of it is seen then.
 * @param {any} option
 * @returns {string}
 */
const optionText = (option) => {
  const select = option.closest("select");
  const isDrawn = select && !option.getAttribute("label") && styleOf(select).appearance === "base-select";
  return (isDrawn && textIn(option, collecting(option, "option", { includesHidden: true }))) || squeeze(option.label);
};
/** The name of an option. @param {any} option @returns {string} */
const optionName = (option) => nameOf(option, "option");
/**
 * The options of a list with names that differ: the second `Other` is `Other (2)`.
 * @param {any} list
 * @returns {[any, string][]}
 */
const namedOptions = (list) => {
  /** @type {Map<string, number>} */
  const counts = new Map();
  return Array.from(list.options, (option) => {
    const name = optionName(option);
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return [option, count > 1 ? `${name} (${count})`.trim() : name];
  });
};
/** Whether an option is greyed out, by itself or with its group. @param {any} option */
const isDisabledOption = (option) => option.disabled || option.parentElement?.disabled === true;
/** Whether the open list does not show an option. @param {any} option */
const isHiddenOption = (option) => option.hidden || option.parentElement?.hidden || styleOf(option).display === "none";
