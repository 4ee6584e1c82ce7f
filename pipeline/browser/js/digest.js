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

const digestRoot = (hash, root) => {
  hash.feed((root.documentElement ?? root).outerHTML ?? root.innerHTML);
  for (const sheet of [...root.styleSheets, ...(root.adoptedStyleSheets || [])]) hash.feed(sheetState(sheet));
  for (const field of root.querySelectorAll("input, textarea, select, video, audio")) hash.feed(fieldState(field));
  let place = 0;
  for (const element of root.querySelectorAll("*")) {
    place += 1;
    const { scrollTop, scrollLeft, shadowRoot } = plain(element);
    if (scrollTop || scrollLeft) hash.feed(`${place} ${scrollTop} ${scrollLeft}`);
    if (shadowRoot) {
      hash.feed(`shadow ${place}`);
      digestRoot(hash, shadowRoot);
    }
  }
  for (const frame of root.querySelectorAll("iframe, frame")) {
    let inner = null;
    try {
      inner = frame.contentDocument;
    } catch {
      // of another origin: only the element itself counts
    }
    if (inner?.documentElement) {
      hash.feed(inner.location.href);
      digestRoot(hash, inner);
    }
  }
};

const digest = () => {
  const hash = newHash();
  hash.feed(location.href);
  if (document.documentElement) digestRoot(hash, document);
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
