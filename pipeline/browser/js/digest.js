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

const digestRoot = (hash, root) => {
  const host = root.documentElement ?? root;
  hash.feed(host.outerHTML ?? host.innerHTML);
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

const digestDocument = () => {
  const hash = newHash();
  hash.feed(location.href);
  if (!document.documentElement) return hash.hex();
  digestRoot(hash, document);
  seekRoots();
  for (const host of shadowHosts) {
    if (!host.isConnected) shadowHosts.delete(host);
    else digestRoot(hash, shadowOf(host));
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
