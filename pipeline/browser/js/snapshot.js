// What does one look at the page return?

const storageDigest = () => {
  const read = (storage) => {
    const items = {};
    for (let i = 0; i < storage.length; i++) items[storage.key(i)] = hashOf(storage.getItem(storage.key(i)));
    return items;
  };
  try {
    return { local: read(localStorage), session: read(sessionStorage) };
  } catch {
    return { local: {}, session: {} }; // storage is denied to this document (an opaque origin)
  }
};

const takeActivity = () => {
  const { opened, tabs, stopped, dialogs } = activity;
  activity.opened = 0;
  activity.tabs = [];
  activity.stopped = [];
  activity.dialogs = [];
  return { opened, tabs, stopped, dialogs };
};
const takeAllActivity = () => {
  const taken = takeActivity();
  for (const inner of innerWaygraphs(window)) {
    const theirs = inner.takeActivity();
    for (const key of Object.keys(taken)) taken[key] = taken[key].concat?.(theirs[key]) ?? taken[key] + theirs[key];
  }
  return taken;
};

// Places and candidates travel as flat lists: see `parse_snapshot` for what stands where.
const flat = (c) => [
  c.kind, c.value, c.role, c.name, c.place, c.frame, c.css, c.target, c.tag, c.disabled, c.submits, c.download, c.nth, c.method, c.handler,
  c.icon, c.covered, ...c.box,
];
const snapshot = (options) => {
  const start = now();
  const seen = createLook(options).whole();
  const banner = bannerOf(seen.candidates, seen.elements);
  addRows(seen);
  const result = {
    url: location.href,
    title: squeeze(documentTitle.call(document)),
    contentType: document.contentType,
    status: performance.getEntriesByType("navigation")[0]?.responseStatus || 0,
    steps: seen.steps.join("\n"),
    parents: seen.parents,
    veiled: seen.veiled,
    documents: seen.documents,
    candidates: seen.candidates.map(flat),
    segments: seen.segments,
    segmentsCut: seen.segmentsCut,
    cut: seen.cut,
    digest: options.digest ? digest() : "",
    storage: storageDigest(),
    password: asksForPassword(),
    draws: document.querySelector("canvas") !== null,
    foreign: tellForeign((frame) => seen.foreign.get(frame) ?? null),
    banner,
    ...takeAllActivity(),
  };
  result.ms = now() - start;
  return result;
};
