// Provides `otherLinks`: addresses of pages in the markup that are no candidates. No person sees them, or they come after the
// last element of a pass that was cut.

const ADDRESSED = "a, area, link[rel], form[action], [formaction]";
const MAX_LINKS = 50_000; // of one document with the frames of its origin
const MAX_OF_FOLDER = 10_000; // so that a list leaves room for all other links
/** Types of links to other pages (HTML, and the IANA registry). Others load resources or name the page itself. */
const PAGE_RELS = new Set(
  ("alternate appendix author chapter collection contents copyright first glossary help home index last license next payment " +
    "prev previous privacy-policy search section start subsection tag terms-of-service toc top up").split(" "),
);
const PAGE_TYPE = /^(?:text\/html|application\/xhtml\+xml)?(?:;|$)/i;

/**
 * The address that a GET form or its button sends to, with the values of hidden fields, which say what the form does. Fields
 * that a person fills are left out. Empty for other forms, and for those that send to their own page.
 * @param {any} form
 * @param {any} sender The form or the button.
 * @param {string} attribute
 * @returns {string}
 */
const formAddress = (form, sender, attribute) => {
  const given = sender.getAttribute(attribute);
  if (!given || !URL.canParse(given, form.baseURI)) return "";
  const sent = new URLSearchParams();
  for (const field of form.querySelectorAll("input[type=hidden][name]")) {
    if (!field.disabled && field.value) sent.append(field.name, field.value);
  }
  const query = sent.toString();
  return new URL(given, form.baseURI).href.replace(/[?#].*$/, "") + (query && `?${query}`);
};

/**
 * The address of a page that an element names; empty if it names none.
 * @param {any} element Unclobbered.
 * @param {any} node
 * @returns {string}
 */
const pageAddress = (element, node) => {
  const tag = element.localName;
  if (element.hasAttribute("download")) return "";
  if (element.namespaceURI !== XHTML && tag !== "a") return ""; // an SVG image may have a style sheet
  if (tag === "form") return formMethod.call(node) === "get" ? formAddress(element, element, "action") : "";
  if (element.hasAttribute("formaction")) {
    const isGet = element.form && submissionMethod(element, NO_HANDLERS) === "get";
    return isGet ? formAddress(unclobbered(element.form), element, "formaction") : "";
  }
  if (tag !== "link") return linkTarget(element);
  const rels = element.rel.toLowerCase().split(/\s+/);
  const isPage = rels.some((/** @type {string} */ rel) => PAGE_RELS.has(rel)) && !rels.includes("stylesheet");
  return isPage && PAGE_TYPE.test(element.type) ? element.href : "";
};

/** @param {any} element A button, or a link. @returns {string} */
const textOfButton = (element) => squeeze((element.localName === "input" ? element.value : element.textContent) || "");

/**
 * What the markup calls a link. Nothing is drawn, so that there is no accessible name.
 * @param {any} element Unclobbered.
 */
const nameInMarkup = (element) => {
  const tag = element.localName;
  const label = squeeze(element.getAttribute("aria-label") ?? "");
  if (label) return label;
  if (tag === "form") {
    const button = element.querySelector("button:not([type=button], [type=reset]), input[type=submit]");
    const field = element.querySelector("input[placeholder]");
    return (button && textOfButton(button)) || squeeze(field?.placeholder || element.getAttribute("title") || "");
  }
  const text = textOfButton(element);
  return text || squeeze(element.alt || element.querySelector("img[alt]")?.alt || element.getAttribute("title") || "");
};

/**
 * The roots of this document and of the documents in frames of its origin.
 * @param {any} win
 * @returns {Generator<any>}
 */
const rootsInside = function* (win) {
  yield win.document;
  yield* rootsIn(win);
  for (const frame of framesOf(win)) {
    const inner = documentIn(frame)?.defaultView;
    if (inner) yield* rootsInside(inner);
  }
};

/**
 * @param {Pass} pass
 * @returns {{ links: [string, string, boolean][], linksCut: number }} URL, name, and whether no person sees the link.
 */
const otherLinks = (pass) => {
  /** @type {[string, string, boolean][]} */
  const links = [];
  const listed = new Set(pass.elements);
  const isPartial = pass.counts.exposed >= MAX_EXPOSED || !pass.roles.has("link");
  /** @type {Set<string>} */
  const known = new Set([withoutAnchor(location.href)]);
  for (const candidate of pass.candidates) if (candidate.kind === "click") known.add(withoutAnchor(candidate.target));
  const counts = new Map();
  let linksCut = 0;
  searchRoots();
  for (const root of rootsInside(window)) {
    const hasNoscript = root.querySelector("noscript *") !== null; // elements, in a frame without scripts
    for (const node of root.querySelectorAll(ADDRESSED)) {
      if (listed.has(node) && !node.hasAttribute("formaction")) continue;
      const element = unclobbered(node);
      const url = withoutAnchor(pageAddress(element, node));
      if (!/^https?:/.test(url) || known.has(url)) continue;
      if (hasNoscript && element.closest("noscript")) continue;
      known.add(url);
      const folder = url.replace(/[^/]*(?:\?.*)?$/, "");
      const count = (counts.get(folder) ?? 0) + 1;
      counts.set(folder, count);
      if (count > MAX_OF_FOLDER || links.length >= MAX_LINKS) linksCut += 1;
      else links.push([url, nameInMarkup(element), !(isPartial && isDrawn(node, element))]);
    }
  }
  return { links, linksCut };
};
/**
 * A URL without a fragment, unless that may name a view.
 * @param {string} url
 */
const withoutAnchor = (url) => (IS_ROUTE.test(url) ? url : url.replace(/#.*$/, ""));
/**
 * Whether a link is drawn, for links that no pass has visited.
 * @param {any} node
 * @param {any} element The node, unclobbered.
 */
const isDrawn = (node, element) => {
  if (element.localName !== "a" || !isSeen(node) || element.closest("[aria-hidden=true], [inert]")) return false;
  const { width, height, right, bottom } = element.getBoundingClientRect();
  return width > 0 && height > 0 && right + window.scrollX > 0 && bottom + window.scrollY > 0;
};
