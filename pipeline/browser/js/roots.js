// Which elements may hold a shadow root that was written into the page as closed? No script is told of one; the driver can
// see it, and is asked about these elements alone. An ordinary page has none, so it is not asked.

const UNDISCLOSED = "undisclosed"; // the answer of a page that may hold one, see `closed_roots.py`
const BUILT_IN_HOSTS = new Set([
  "article", "aside", "blockquote", "body", "div", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "main", "nav",
  "p", "section", "span",
]);
const MAX_SUSPECTS = 16; // of one document; of elements with one name and one class the first stands for all
const BOXES = new Set(["block", "flow-root", "inline-block"]); // as high as what is in them, unless a style says more
const NO_HEIGHT = new Set(["auto", "0px"]);

const lengths = (style, names) => names.reduce((sum, name) => sum + (parseFloat(style[name]) || 0), 0);
// Whether an element without children is larger than its style makes it.
const isFilled = (element) => {
  if (!element.offsetWidth || !element.offsetHeight || element.isContentEditable) return false;
  const style = getComputedStyle(element);
  const width = element.offsetWidth - lengths(style, ["paddingLeft", "paddingRight", "borderLeftWidth", "borderRightWidth"]);
  const height = element.offsetHeight - lengths(style, ["paddingTop", "paddingBottom", "borderTopWidth", "borderBottomWidth"]);
  if (width < 1 || height < 1) return false;
  if (["::before", "::after"].some((part) => getComputedStyle(element, part).content !== "none")) return false;
  if (style.display === "inline") return true;
  if (!BOXES.has(style.display) || style.position === "absolute" || style.position === "fixed") return false;
  const given = element.computedStyleMap();
  return (
    String(given.get("height")) === "auto" && NO_HEIGHT.has(String(given.get("min-height"))) &&
    style.aspectRatio === "auto" && !/flex|grid/.test(getComputedStyle(element.parentElement ?? element.parentNode.host).display)
  );
};
// What stands in an element and is in none of the slots of its shadow root has no style at all.
const isLeftOut = (child) =>
  !child.checkVisibility() && getComputedStyle(child).display === "" && getComputedStyle(child.parentElement).display !== "";
const mayHide = (element, tag) => {
  const isCustom = tag.includes("-");
  if (!isCustom && !BUILT_IN_HOSTS.has(tag)) return false;
  // A custom element that a script made has told who it is: see `attachInternals` below.
  if (isCustom && !element.matches(":defined")) return element.checkVisibility();
  const child = element.firstElementChild;
  return child ? isLeftOut(child) : element.firstChild === null && isFilled(element);
};

let sought = false; // whether the document was searched since roots were last written into it
let suspects = [];
// Register the open roots that were written into this document, and collect the elements that may hold closed ones.
const seekRoots = () => {
  if (sought) return;
  sought = document.readyState === "complete";
  const kinds = new Map();
  const search = (root) => {
    for (const node of root.querySelectorAll("*")) {
      const inner = shadowOf(node);
      if (inner) {
        search(inner);
        continue;
      }
      const tag = node.localName; // of a form it may be a field, and a form holds no root
      if (kinds.size === MAX_SUSPECTS || typeof tag !== "string" || !mayHide(node, tag)) continue;
      const kind = `${tag} ${node.getAttribute("class") ?? ""}`;
      if (!kinds.has(kind)) kinds.set(kind, node);
    }
  };
  search(document);
  suspects = [...kinds.values()];
};
// Those of this document, and of the frames in it that are of its origin.
const mySuspects = () => {
  seekRoots();
  return suspects;
};
const allSuspects = () => [mySuspects, ...[...innerWaygraphs(window)].map((inner) => inner.mySuspects)].flatMap((of) => of());
// Hand them to the driver, which asks once.
const forgetSuspects = () => {
  suspects = [];
};
const takeSuspects = () => {
  const taken = allSuspects();
  forgetSuspects();
  for (const inner of innerWaygraphs(window)) inner.forgetSuspects();
  return taken;
};
// The driver found one.
const disclose = (root) => {
  closedRoots.set(root.host, root);
  shadowOf(root.host);
};
// What is answered instead of a look while there is somebody to ask.
const isUndisclosed = (options) => Boolean(options.discloses) && withNatives(allSuspects).length > 0;

// Who is given the internals of a custom element is given its closed root.
const nativeInternals = HTMLElement.prototype.attachInternals;
HTMLElement.prototype.attachInternals = function attachInternals() {
  const internals = apply(nativeInternals, this, arguments);
  const root = internals.shadowRoot;
  if (root?.mode === "closed" && window[KEY].guarded) disclose(root);
  return internals;
};
for (const holder of [Element.prototype, ShadowRoot.prototype]) {
  const { setHTMLUnsafe } = holder;
  if (!setHTMLUnsafe) continue;
  holder.setHTMLUnsafe = function (...args) {
    sought = false; // unlike innerHTML, it makes roots of what is written
    return apply(setHTMLUnsafe, this, args);
  };
}
