// Provides `isUndisclosed` and `takeSuspects`: elements that may hold a closed shadow root made by the parser. No script can
// see such a root. The DevTools protocol can, and it describes only these elements; most pages have none.

const UNDISCLOSED = "undisclosed"; // result of a page that has suspects, see `closed_roots.py`
const BUILT_IN_HOSTS = new Set([
  "article", "aside", "blockquote", "body", "div", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "main", "nav",
  "p", "section", "span",
]);
const MAX_SUSPECTS = 16; // of one document; the first element of a name and class represents all others
const CONTENT_HEIGHT_DISPLAYS = new Set(["block", "flow-root", "inline-block"]); // as high as the content, unless styled
const NO_HEIGHT = new Set(["auto", "0px"]);

/**
 * @param {any} style
 * @param {string[]} properties
 * @returns {number}
 */
const sumOfLengths = (style, properties) => properties.reduce((sum, name) => sum + (parseFloat(style[name]) || 0), 0);
/**
 * Whether an element without children is larger than its style makes it.
 * @param {any} element
 */
const hasUnseenContent = (element) => {
  if (!element.offsetWidth || !element.offsetHeight || element.isContentEditable) return false;
  const style = getComputedStyle(element);
  const width = element.offsetWidth - sumOfLengths(style, ["paddingLeft", "paddingRight", "borderLeftWidth", "borderRightWidth"]);
  const height = element.offsetHeight - sumOfLengths(style, ["paddingTop", "paddingBottom", "borderTopWidth", "borderBottomWidth"]);
  if (width < 1 || height < 1) return false;
  if (["::before", "::after"].some((part) => getComputedStyle(element, part).content !== "none")) return false;
  if (style.display === "inline") return true;
  if (!CONTENT_HEIGHT_DISPLAYS.has(style.display) || style.position === "absolute" || style.position === "fixed") return false;
  const given = element.computedStyleMap();
  return (
    String(given.get("height")) === "auto" && NO_HEIGHT.has(String(given.get("min-height"))) &&
    style.aspectRatio === "auto" && !/flex|grid/.test(getComputedStyle(element.parentElement ?? element.parentNode.host).display)
  );
};
/**
 * Whether a child is in no slot of its parent's shadow root: it then has no style at all.
 * @param {any} child
 */
const isUnslotted = (child) =>
  !unclobbered(child).checkVisibility() && getComputedStyle(child).display === "" && getComputedStyle(parentOf(child)).display !== "";
/**
 * Whether an element may hold a closed root.
 * @param {any} element
 * @param {string} tag
 */
const isSuspect = (element, tag) => {
  const isCustom = tag.includes("-");
  if (!isCustom && !BUILT_IN_HOSTS.has(tag)) return false;
  // The root of a defined custom element is known from `attachInternals`, see below.
  if (isCustom && !element.matches(":defined")) return element.checkVisibility();
  const child = element.firstElementChild;
  return child ? isUnslotted(child) : element.firstChild === null && hasUnseenContent(element);
};

let wasSearched = false; // whether the document was searched since markup with roots was last written into it
/** @type {Element[]} */
let suspects = [];
/** Register the open roots that the parser made, and collect the suspects of this document. */
const searchRoots = () => {
  if (wasSearched) return;
  wasSearched = document.readyState === "complete";
  /** @type {Map<string, Element>} */
  const kinds = new Map();
  const search = (/** @type {any} */ root) => {
    for (const node of root.querySelectorAll("*")) {
      const inner = shadowOf(node);
      if (inner) {
        search(inner);
        continue;
      }
      const tag = node.localName; // for a form this may be a field, and a form cannot hold a root
      if (kinds.size === MAX_SUSPECTS || typeof tag !== "string" || !isSuspect(node, tag)) continue;
      const kind = `${tag} ${node.getAttribute("class") ?? ""}`;
      if (!kinds.has(kind)) kinds.set(kind, node);
    }
  };
  search(document);
  suspects = [...kinds.values()];
};
/** The suspects of this document. */
const ownSuspects = () => {
  searchRoots();
  return suspects;
};
/** The suspects of this document and of the frames of its origin. */
const allSuspects = () =>
  [ownSuspects, ...[...innerScripts(window)].map((inner) => inner.ownSuspects)].flatMap((suspectsOf) => suspectsOf());
const forgetSuspects = () => {
  suspects = [];
};
/** Return all suspects and forget them: each is checked once. */
const takeSuspects = () => {
  const taken = allSuspects();
  forgetSuspects();
  for (const inner of innerScripts(window)) inner.forgetSuspects();
  return taken;
};
/**
 * Register a closed root.
 * @param {ShadowRoot} root
 */
const disclose = (root) => {
  closedRoots.set(root.host, root);
  shadowOf(root.host);
};
/**
 * Whether a call must return `UNDISCLOSED` first, because the caller can check suspects and there are some.
 * @param {SnapshotOptions} options
 */
const isUndisclosed = (options) => Boolean(options.reportsSuspects) && withNatives(allSuspects).length > 0;

// The internals of a custom element give access to its closed root, and have its role and its name, see roles.js.
const nativeInternals = HTMLElement.prototype.attachInternals;
HTMLElement.prototype.attachInternals = function attachInternals() {
  const internals = apply(nativeInternals, this, /** @type {any} */ (arguments));
  knownInternals.set(this, internals);
  const root = internals.shadowRoot;
  if (root?.mode === "closed" && window[KEY].guarded) disclose(root);
  return internals;
};
for (const holder of /** @type {any[]} */ ([Element.prototype, ShadowRoot.prototype])) {
  const { setHTMLUnsafe } = holder;
  if (!setHTMLUnsafe) continue;
  holder.setHTMLUnsafe = /** @this {any} @param {any[]} args */ function (...args) {
    wasSearched = false; // unlike innerHTML, it makes shadow roots
    return apply(setHTMLUnsafe, this, args);
  };
}
