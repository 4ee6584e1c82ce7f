// Provides `digest`: a hash of everything in the document that a person or a script would find again.

/** @param {any} field */
const fieldState = (field) => {
  const tag = field.localName;
  if (tag === "select") return Array.from(field.options, (option) => (option.selected ? "1" : "0")).join("");
  if (tag === "video" || tag === "audio") return String(field.paused);
  return `${field.type}${field.checked}${field.indeterminate}${field.type === "file" ? "" : field.value}`;
};

/** @param {any} sheet */
const sheetState = (sheet) => {
  let rules = -1;
  try {
    rules = sheet.cssRules.length;
  } catch {
    // another origin
  }
  return `${sheet.disabled} ${rules}`;
};

/** Boxes that were scrolled. @type {Set<any>} */
const scrolledBoxes = lasting(new Set());
window.addEventListener(
  "scroll",
  ({ target }) => /** @type {any} */ (target)?.nodeType === 1 && scrolledBoxes.add(target),
  { capture: true, passive: true },
);

// ---- markup ----

// Hashes of the markup of the children of <html> and <body>, and of shadow roots, are cached: an action changes few of them.
/** @type {WeakMap<any, string>} */
let markups = lasting(new WeakMap());
const readParent = Function.prototype.call.bind(/** @type {any} */ (readProperty(Node.prototype, "parentNode")).get);
/** @param {MutationRecord} record */
const forgetChangedMarkup = ({ target, addedNodes }) => {
  for (let node = target; node; node = readParent(node)) markups.delete(node);
  for (const node of /** @type {any} */ (addedNodes)) {
    markups.delete(node); // it may have changed while it was in no document
    if (node.localName === "body" || node.localName === "html") markups = lasting(new WeakMap());
  }
};
/** Whether all mutations in a root are observed, except those in templates. @param {any} root */
const isObserved = (root) => root === document || observedRoots.has(root);
/**
 * @param {any} node
 * @param {boolean} cache
 * @returns {string}
 */
const markupHash = (node, cache) => {
  const known = markups.get(node);
  if (known) return known;
  const element = unclobbered(node);
  const hash = hashOf(element.outerHTML ?? element.innerHTML);
  if (cache && element.localName !== "template" && !element.querySelector("template")) {
    markups.set(node, hash);
    forgetMarkup = forgetChangedMarkup;
  }
  return hash;
};
// Read through the prototype: `document.body` may be a form (DOM clobbering).
const readBody = Function.prototype.call.bind(/** @type {any} */ (readProperty(Document.prototype, "body")).get);
/**
 * @param {TextHash} hash
 * @param {any} root
 */
const feedMarkup = (hash, root) => {
  const cache = isObserved(root);
  const body = root.nodeType === 9 ? readBody(root) : null;
  if (!body) {
    hash.feed(markupHash(root.documentElement ?? root, cache));
    return;
  }
  for (const outer of [root.documentElement, body]) {
    for (const name of outer.getAttributeNames()) hash.feed(`${name}=${outer.getAttribute(name)}`);
    for (let node = outer.firstChild; node; node = unclobbered(node).nextSibling) {
      if (node !== body) hash.feed(node.nodeType === 1 ? markupHash(node, cache) : `${node.nodeType} ${node.data}`);
    }
  }
};
/**
 * @param {TextHash} hash
 * @param {any} root
 */
const feedRoot = (hash, root) => {
  feedMarkup(hash, root);
  for (const sheet of [...root.styleSheets, ...(root.adoptedStyleSheets || [])]) hash.feed(sheetState(sheet));
  for (const field of root.querySelectorAll("input, textarea, select, video, audio")) hash.feed(fieldState(field));
  // No attribute shows whether a popover is open or a dialog is modal.
  for (const box of root.querySelectorAll("[popover], dialog")) hash.feed(`${box.matches(":popover-open")}${box.matches(":modal")}`);
  for (const frame of root.nodeType === 9 ? framesIn(root) : root.querySelectorAll(FRAMES)) {
    const doc = /** @type {any} */ (documentIn(frame)); // of a cross-origin frame only the element counts
    const inner = doc?.defaultView?.[KEY];
    if (inner) hash.feed(inner.digestDocument());
    else if (doc?.documentElement) feedRoot(hash, doc);
  }
};

// ---- digests ----

const MAX_HOSTS = 1_000; // a list that is rebuilt again and again leaves its old shadow hosts behind
/** Digest of this document and the frames of its origin, without cookies and storage. @returns {string} */
const digestDocument = () => {
  const hash = newHash();
  hash.feed(location.href);
  if (!document.documentElement) return hash.hex();
  flushMutations();
  feedRoot(hash, document);
  searchRoots();
  for (const host of shadowHosts) {
    if (host.isConnected) feedRoot(hash, shadowOf(host));
    else if (shadowHosts.size > MAX_HOSTS) shadowHosts.delete(host); // below the limit, a host may be inserted again
  }
  for (const box of scrolledBoxes) {
    const { isConnected, scrollTop, scrollLeft } = unclobbered(box);
    if (!isConnected) scrolledBoxes.delete(box);
    else if (scrollTop || scrollLeft) hash.feed(`${box.localName} ${scrollTop} ${scrollLeft}`);
  }
  return hash.hex();
};

/** Digest of the page. @returns {string} */
const digest = () => {
  const hash = newHash();
  hash.feed(digestDocument());
  const tools = toolsState();
  if (tools) hash.feed(tools);
  try {
    hash.feed(document.cookie);
    for (const storage of [localStorage, sessionStorage]) {
      for (const key of Object.keys(storage).sort()) hash.feed(`${key}\n${storage.getItem(key)}`);
    }
  } catch {
    // a document with an opaque origin has no access to cookies and storage
  }
  return hash.hex();
};
