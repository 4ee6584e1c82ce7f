// Provides `snapshot`: the result of one observation of the page, which `parse_snapshot` in snapshot.py reads.

const storageHashes = () => {
  const read = (/** @type {Storage} */ storage) => {
    /** @type {Record<string, string>} */
    const items = {};
    for (let i = 0; i < storage.length; i++) {
      const key = /** @type {string} */ (storage.key(i));
      items[key] = hashOf(/** @type {string} */ (storage.getItem(key)));
    }
    return items;
  };
  try {
    return { local: read(localStorage), session: read(sessionStorage) };
  } catch {
    return { local: {}, session: {} }; // a document with an opaque origin has no access to storage
  }
};

/** JSON-LD documents of the page, which Python reads (linked_data.py). A longer one describes more than the page. */
const linkedData = () => {
  const scripts = [...document.querySelectorAll('script[type="application/ld+json" i]')].slice(0, 10);
  return scripts.map((script) => script.textContent ?? "").filter((text) => text.length <= 65_536);
};

/** Addresses of feeds, and of the description of a search, that the document names. Many pages name one of each. */
const ownLists = () => {
  const links = [...document.querySelectorAll("link[rel~=alternate i][href], link[rel~=search i][href]")];
  return links
    .filter((link) => /^application\/(rss|atom|opensearchdescription)\+xml/i.test(link.getAttribute("type") ?? ""))
    .slice(0, 5)
    .map((link) => String(/** @type {HTMLLinkElement} */ (link).href));
};

/** The address that the document names as its own, among others that show the same. */
const canonicalAddress = () => {
  const link = document.head?.querySelector("link[rel~=canonical i][href]");
  const address = link ? String(/** @type {HTMLLinkElement} */ (link).href) : "";
  return /^https?:/.test(address) ? address : "";
};

/** Return and reset what happened in this document since the last call. @returns {ActivityReport} */
const takeActivity = () => {
  const { opened, tabs, stopped, dialogs } = activity;
  activity.opened = 0;
  activity.tabs = [];
  activity.stopped = [];
  activity.dialogs = [];
  return { opened, tabs: tabs.map(({ url }) => url).filter((url) => /^https?:/.test(url)), stopped, dialogs };
};
/** Return and reset what happened in this document and the frames of its origin. @returns {ActivityReport} */
const takeAllActivity = () => {
  /** @type {any} */
  const taken = takeActivity();
  for (const inner of innerScripts(window)) {
    /** @type {any} */
    const theirs = inner.takeActivity();
    for (const key of Object.keys(taken)) taken[key] = taken[key].concat?.(theirs[key]) ?? taken[key] + theirs[key];
  }
  return taken;
};

/**
 * A candidate as a flat list, which `parse_snapshot` reads by position.
 * @param {Candidate} c
 */
const flattened = (c) => [
  c.kind, c.value, c.role, c.name, c.place, c.frame, c.css, c.target, c.tag, c.disabled, c.submits, c.download, c.nth, c.method, c.handler,
  c.icon, c.covered, c.form, c.listener, ...c.box,
];
/** Agents read no links beyond the candidates. */
const NO_LINKS = { links: [], linksCut: 0 };
/** @param {SnapshotOptions} options */
const snapshot = (options) => {
  const start = now();
  const [pass, tools] = withCaches(() => [passOverPage(options), pageTools()]);
  const banner = bannerOf(pass.candidates, pass.elements);
  if (!options.outline) addRows(pass);
  const outline = options.outline ? withCaches(() => outlineOf(pass)) : []; // first: it adds the places of frames
  const navigation = /** @type {any} */ (navigationEntries()[0]);
  return {
    url: location.href,
    title: squeeze(documentTitle.call(document)),
    contentType: document.contentType,
    status: navigation?.responseStatus || 0,
    steps: pass.steps.join("\n"),
    parents: pass.parents,
    unexposed: pass.unexposed,
    documents: pass.documents,
    candidates: pass.candidates.map(flattened),
    segments: pass.segments,
    hidden: pass.hidden,
    ...(options.outline ? NO_LINKS : otherLinks(pass)),
    linkedData: linkedData(),
    ownLists: ownLists(),
    canonical: canonicalAddress(),
    ...tools,
    outline,
    view: options.outline ? viewOf() : null,
    segmentsCut: pass.counts.segmentsCut,
    cut: pass.counts.exposed >= MAX_EXPOSED,
    digest: options.digest ? digest() : "",
    storage: storageHashes(),
    mayGrow: !options.outline && growingBoxes().length > 0,
    password: hasPasswordField(),
    login: options.outline && asksLogin(),
    hasCanvas: document.querySelector("canvas") !== null,
    crossOrigin: reportCrossOrigin((frame) => pass.crossOrigin.get(frame) ?? null),
    banner,
    ...takeAllActivity(),
    ms: now() - start, // last, so that it includes everything above
  };
};
