// Is the page as it was? A hash over all that a person or its scripts would find in the document again.

const fieldState = (field) => {
  const tag = field.localName;
  if (tag === "select") return Array.from(field.options, (option) => (option.selected ? "1" : "0")).join("");
  if (tag === "video" || tag === "audio") return String(field.paused);
  return `${field.type}${field.checked}${field.indeterminate}${field.type === "file" ? "" : field.value}`;
};

const sheetState = (sheet) => {
  let rules = -1;
  try {
    rules = sheet.cssRules.length;
  } catch {
    // of another origin
  }
  return `${sheet.disabled} ${rules}`;
};

// Boxes that were scrolled, as far as they told so.
const scrolled = lasting(new Set());
window.addEventListener("scroll", ({ target }) => target?.nodeType === 1 && scrolled.add(target), { capture: true, passive: true });

// Hashes of the markup of what stands in <html> and <body>, and of shadow roots: an action changes few of them.
let markups = lasting(new WeakMap());
const readParent = Function.prototype.call.bind(readProperty(Node.prototype, "parentNode").get);
const forgetWhatChanged = ({ target, addedNodes }) => {
  for (let node = target; node; node = readParent(node)) markups.delete(node);
  for (const node of addedNodes) {
    markups.delete(node); // it may have changed while it was nowhere
    if (node.localName === "body" || node.localName === "html") markups = lasting(new WeakMap());
  }
};
const isTold = (root) => root === document || watched.has(root); // of all that changes in it, templates aside
const markupOf = (node, keep) => {
  const known = markups.get(node);
  if (known) return known;
  const part = plain(node);
  const written = hashOf(part.outerHTML ?? part.innerHTML);
  if (keep && part.localName !== "template" && !part.querySelector("template")) {
    markups.set(node, written);
    forgetMarkup = forgetWhatChanged;
  }
  return written;
};
const readBody = Function.prototype.call.bind(readProperty(Document.prototype, "body").get); // of a document it may be a form
const feedMarkup = (hash, root) => {
  const keep = isTold(root);
  const body = root.nodeType === 9 ? readBody(root) : null;
  if (!body) {
    hash.feed(markupOf(root.documentElement ?? root, keep));
    return;
  }
  for (const outer of [root.documentElement, body]) {
    for (const name of outer.getAttributeNames()) hash.feed(`${name}=${outer.getAttribute(name)}`);
    for (let node = outer.firstChild; node; node = plain(node).nextSibling) {
      if (node !== body) hash.feed(node.nodeType === 1 ? markupOf(node, keep) : `${node.nodeType} ${node.data}`);
    }
  }
};
const digestRoot = (hash, root) => {
  feedMarkup(hash, root);
  for (const sheet of [...root.styleSheets, ...(root.adoptedStyleSheets || [])]) hash.feed(sheetState(sheet));
  for (const field of root.querySelectorAll("input, textarea, select, video, audio")) hash.feed(fieldState(field));
  // Neither has an attribute that says so.
  for (const box of root.querySelectorAll("[popover], dialog")) hash.feed(`${box.matches(":popover-open")}${box.matches(":modal")}`);
  for (const frame of root.nodeType === 9 ? framesIn(root) : root.querySelectorAll(FRAMES)) {
    const doc = documentIn(frame); // of another origin: only the element itself counts
    const inner = doc?.defaultView?.[KEY];
    if (inner) hash.feed(inner.digestDocument());
    else if (doc?.documentElement) digestRoot(hash, doc);
  }
};

const MAX_HOSTS = 1_000; // of shadow roots; a list that is made anew over and over leaves its old ones behind
const digestDocument = () => {
  const hash = newHash();
  hash.feed(location.href);
  if (!document.documentElement) return hash.hex();
  tellChanges();
  digestRoot(hash, document);
  seekRoots();
  for (const host of shadowHosts) {
    if (host.isConnected) digestRoot(hash, shadowOf(host));
    else if (shadowHosts.size > MAX_HOSTS) shadowHosts.delete(host); // others may be put back
  }
  for (const box of scrolled) {
    const { isConnected, scrollTop, scrollLeft } = plain(box);
    if (!isConnected) scrolled.delete(box);
    else if (scrollTop || scrollLeft) hash.feed(`${box.localName} ${scrollTop} ${scrollLeft}`);
  }
  return hash.hex();
};

const digest = () => {
  const hash = newHash();
  hash.feed(digestDocument());
  try {
    hash.feed(document.cookie);
    for (const storage of [localStorage, sessionStorage]) {
      for (const key of Object.keys(storage).sort()) hash.feed(`${key}\n${storage.getItem(key)}`);
    }
  } catch {
    // cookies and storage are denied to this document (an opaque origin)
  }
  return hash.hex();
};
