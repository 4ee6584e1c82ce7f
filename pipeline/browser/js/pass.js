// Which elements are exposed, which can be acted on, and what do they say?

const stableSelector = (node) => {
  const element = plain(node);
  for (const name of ["data-testid", "data-test-id", "data-test", "data-qa", "data-cy"]) {
    const value = element.getAttribute(name);
    if (value) return `[${name}="${CSS.escape(value)}"]`;
  }
  return element.id && !/\d{3,}|:/.test(element.id) ? `#${CSS.escape(element.id)}` : "";
};

const linkTarget = (element) => {
  const tag = element.localName;
  if (tag !== "a" && tag !== "area") return "";
  const drawn = element.namespaceURI !== XHTML;
  const written = drawn ? element.href?.baseVal : element.href;
  if (typeof written !== "string" || written === "") return "";
  if (drawn) return URL.canParse(written, element.baseURI) ? new URL(written, element.baseURI).href : "";
  // What could not be resolved is given back as it is written, and then does not begin as this page does.
  return written.startsWith(`${location.origin}/`) || URL.canParse(written) ? written : "";
};

// A label stands for its checkbox or radio button when that is not itself to be seen (CSS-only menus and tabs).
const standsForControl = (element) => {
  const control = element.localName === "label" && element.control;
  if (!control || !["checkbox", "radio"].includes(control.type)) return false;
  const rect = control.getBoundingClientRect();
  const visible = control.checkVisibility(FULLY);
  return !visible || rect.width <= 2 || rect.height <= 2 || rect.right <= 0;
};

const NOTHING = new Set();
const DISABLEABLE = new Set(["button", "input", "select", "textarea", "option", "fieldset"]);
const NO_HANDLERS = new Map();

// How a button sends its form; in no way when a script takes what would be a question.
const submission = (button, handlers) => {
  const method = (button.getAttribute("formmethod") || formMethod.call(button.form)).toLowerCase();
  return method === "get" && handlers.get(button.form)?.has("submit") ? "" : method;
};

// Where an absolutely positioned element is cut off: by its containing block, not by every ancestor.
const absoluteClip = (where) => {
  for (let above = where; above.style; above = above.up) {
    if (above.style.position !== "static" || above.style.transform !== "none") return above.clip;
  }
  return where.world.view;
};

// A look at the page. `alone`: consider this element only; its ancestors are walked, nothing else is.
//
// A place is where an element is in the tree: the number of its parent's place and the step from there; the first
// places are documents. Paths are put together from places by whoever needs them, which is seldom in the page.
const createLook = (options, alone = null) => {
  const shown = alone?.localName === "area" ? imageOf(alone) : alone; // what must be exposed for it
  const roles = new Set(options.roles);
  const steps = [];
  const parents = []; // of each place: its parent's number, or -1 - number of its document
  const veiled = []; // places that are no part of the structure: only something in them is, or can be clicked
  const documents = []; // XPaths of the frames that lead to each document
  const candidates = [];
  const elements = []; // parallel to candidates
  const segments = [];
  const foreign = new Map(); // exposed frames of other origins -> where they are
  const inline = new Map();
  let exposed = 0;
  let clicks = 0;
  let segmentsCut = 0;

  const place = (where, step) => {
    if (where.place === null) {
      where.place = place(where.up, where.step);
      veiled.push(where.place);
    }
    parents.push(where.place);
    return steps.push(step) - 1;
  };
  const pathOf = (number) => {
    let path = "";
    for (; number >= 0; number = parents[number]) path = steps[number] + path;
    return path;
  };

  const addSegment = (text, role, rect, { x, y }) => {
    const clean = squeeze(text);
    if (!clean) return;
    if (segments.length >= options.maxSegments) segmentsCut += 1;
    else {
      segments.push([
        clean, role, Math.round(rect.left + x), Math.round(rect.top + y), Math.round(rect.width), Math.round(rect.height),
      ]);
    }
  };

  const addCandidate = (kind, value, node, role, where, number, rect, at = candidates.length) => {
    if (alone && node !== alone) return;
    if (kind === "click") clicks += 1;
    const element = plain(node);
    const tag = element.localName;
    const button = (tag === "button" && element.type === "submit") ||
      (tag === "input" && (element.type === "submit" || element.type === "image"));
    const { origin } = where.world;
    const name = nameOf(node, role);
    candidates.splice(at, 0, {
      kind, value, role, name, ...declared(element, name), place: number, frame: where.world.number, css: stableSelector(node),
      target: linkTarget(node), tag,
      disabled: (DISABLEABLE.has(tag) && element.matches(":disabled")) || element.getAttribute("aria-disabled") === "true",
      submits: button && element.form ? submission(element, where.world.handlers) : "",
      download: element.hasAttribute("download"),
      covered: false,
      nth: 0,
      box: [
        Math.round(rect.left + origin.x), Math.round(rect.top + origin.y), Math.round(rect.width), Math.round(rect.height),
      ],
    });
    elements.splice(at, 0, node);
  };

  const inlineOnly = (element) => {
    let answer = inline.get(element);
    if (answer === undefined) inline.set(element, (answer = isInlineOnly(element)));
    return answer;
  };
  const isInlineOnly = (element) => {
    for (let original = plain(element).firstElementChild; original; original = plain(original).nextElementSibling) {
      const child = plain(original);
      const tag = child.localName;
      if (NEVER.has(tag)) continue;
      if (LEAVES.has(tag) || tag === "img" || tag === "iframe" || shadowOf(child)) return false;
      const { display } = styleOf(original);
      const shown = display !== "none";
      if (shown && !display.startsWith("inline") && display !== "contents") return false;
      const role = roleOf(original);
      if (roles.has(role) || FIELD_ROLES.has(role)) return false;
      if (shown && !inlineOnly(original)) return false;
    }
    return true;
  };

  const speak = (element, role, rect, origin) => {
    if (roles.has(role) || FIELD_ROLES.has(role) || role === "img") {
      addSegment(nameOf(element, role), role, rect, origin);
      return true;
    }
    if (!shadowOf(element) && inlineOnly(element)) {
      addSegment(contentText(element), role || "text", rect, origin);
      return true;
    }
    for (let node = plain(element).firstChild; node; node = node.nextSibling) {
      if (node.nodeType === 3) addSegment(node.data, SPEAKING.has(role) ? role : "text", rect, origin);
    }
    return false;
  };

  // Adds what can be done with an element; says whether its descendants are part of something that is clicked as a whole.
  const act = (node, element, tag, role, where, below) => {
    const { rect, place: number } = below;
    const { handlers } = where.world;
    if (alone && node !== shown) return false;
    if (alone) {
      addCandidate(options.kind, "", alone, roleOf(alone), where, number, rect);
      return false;
    }
    const types = (handlers.size && handlers.get(node)) || NOTHING;
    const listened = types.size > 0 && rect.width * rect.height <= MAX_AREA && tag !== "body" && tag !== "html";
    const add = (kind, value) => addCandidate(kind, value, node, role, where, number, rect);
    if (options.hover) {
      const entered = (where.world.hovers.size && where.world.hovers.has(node)) || (listened && hasAny(types, HOVERS));
      if (entered) add("hover", "");
      // What listens to both takes back when the pointer leaves what it showed when that came.
      else if (listened && hasAny(types, LEAVES_POINTER)) add("hover", "away");
    }
    if (roles.has(role)) {
      add("click", "");
      if (listened) for (const [kind, value] of listenedActions(element, types, true)) add(kind, value);
      return true;
    }
    if (FIELD_ROLES.has(role)) {
      const around = heard || types.size ? typesAround(element, handlers) : types;
      if (!element.matches(":disabled")) {
        for (const [kind, value] of fieldActions(element, role, around, options)) add(kind, value);
      }
      return where.inside;
    }
    if (where.inside || tag === "body" || tag === "html" || tag === "iframe") return where.inside;
    const pointed = below.pointer && !where.pointer;
    let clicked = false;
    if (tag === "label" && element.control) {
      if (!standsForControl(element)) return true;
      clicked = true;
    } else if (element.hasAttribute("onclick") || doesSomething(element.onclick)) clicked = true;
    else if (pointed && !shadowOf(node)) clicked = true;
    else if (opensSomething(element) && element.tabIndex >= 0) clicked = true;
    if (clicked) add("click", "");
    else if (pointed || (listened && hasAny(types, CLICKS))) below.maybe = candidates.length; // when nothing in it is clicked itself
    if (listened) for (const [kind, value] of listenedActions(element, types, clicked || below.maybe >= 0)) add(kind, value);
    return false;
  };

  // Describe one element; returns what its children need to know of it, nothing when there is no need to look at them.
  const enter = (node, element, tag, step, where) => {
    if (NEVER.has(tag) || element.getAttribute("aria-hidden") === "true" || element.inert) return null;
    // Asking a style for one property costs as much as asking for a box: what most elements need not be asked for is not.
    const style = styleOf(node);
    const isSeen = isVisible(node);
    let boxless = false;
    if (!isSeen) {
      const { display } = style;
      if (display === "none") return null;
      boxless = display === "contents";
      if (!boxless && (!element.checkVisibility() || style.opacity === "0")) return null;
    }
    const { world } = where;
    let { clip } = where;
    if (clip !== world.view) {
      const { position } = style;
      if (position === "fixed") clip = world.view;
      else if (position === "absolute") clip = absoluteClip(where);
    }
    const rect = element.getBoundingClientRect();
    const { width, height } = rect;
    const inFront = where.inFront || node === world.modal;
    const isExposed =
      !boxless && width > 0 && height > 0 && (isSeen || style.visibility === "visible") && shares(rect, clip) &&
      (!where.drawing || tag === "a" || alone !== null || hasAny(world.handlers.get(node) || NOTHING, CLICKS)) &&
      inFront;
    const below = {
      up: where, world, step, place: null, style, clip, rect,
      inside: where.inside, pointer: where.pointer, spoken: where.spoken, exposed: isExposed, inFront,
      drawing: where.drawing || tag === "svg", // in which only links and what is listened to count
    };
    if (isExposed) {
      exposed += 1;
      const role = roleOf(node);
      below.place = alone ? -1 : place(where, step);
      // Only a page that this script was in from the start tells who listens, and a state is to be known in any.
      if (where.drawing && tag !== "a" && !alone) veiled.push(below.place);
      below.pointer = where.inside || style.cursor === "pointer"; // inside of what is clicked as a whole nobody asks
      below.inside = act(node, element, tag, role, where, below);
      if (!where.spoken) below.spoken = speak(node, role, rect, world.origin);
    }
    if (LEAVES.has(tag) && !FRAME_TAGS.has(tag) && !(tag === "svg" && (alone || world.drawings.has(node)))) return null;
    if (!boxless && (element.firstElementChild || shadowOf(node))) below.clip = clipBelow(element, style, rect, clip);
    return below;
  };

  const visit = (node, element, step, where) => {
    if (exposed >= MAX_EXPOSED) return;
    const tag = element.localName;
    const below = enter(node, element, tag, step, where);
    if (!below) return;
    if (FRAME_TAGS.has(tag)) {
      if (below.exposed) visitFrame(element, below);
      return;
    }
    if (tag === "img" && element.useMap && below.exposed) visitAreas(element, below);
    const before = clicks;
    const shadow = shadowOf(node);
    if (shadow) visitChildren(shadow, below, " >>> /");
    visitChildren(element, below, "/");
    if (below.maybe >= 0 && clicks === before) {
      addCandidate("click", "", node, roleOf(node), where, below.place, below.rect, below.maybe);
    }
  };

  const visitChildren = (parent, below, separator) => {
    let child = parent.firstElementChild;
    if (!child) return;
    const counts = new Map();
    while (child) {
      const element = plain(child);
      const { nodeName } = element;
      const index = (counts.get(nodeName) || 0) + 1;
      counts.set(nodeName, index);
      visit(child, element, separator + stepName(element, index), below);
      child = element.nextElementSibling;
    }
  };

  // Links on parts of an image; they are elsewhere in the document, and shown where the image is.
  const visitAreas = (image, { world }) => {
    for (const area of areasOf(image)) {
      const rect = areaRect(area, image);
      if (roles.has(roleOf(area)) && !isEmpty(rect)) {
        const number = place({ place: -1 - world.number }, pathFromRoot(area));
        addCandidate("click", "", area, "link", { world }, number, rect);
      }
    }
  };

  const originIn = (frame, rect, { x, y }) => ({ x: x + rect.left + frame.clientLeft, y: y + rect.top + frame.clientTop });

  const visitFrame = (element, below) => {
    const doc = documentIn(element);
    const path = [...documents[below.world.number], pathOf(below.place)];
    const origin = originIn(element, below.rect, below.world.origin);
    if (doc?.documentElement) visitDocument(doc, path, origin);
    // Of another origin: only the frame's own element is seen from here.
    else if (!doc) foreign.set(element, { path, origin, candidates: candidates.length, segments: segments.length });
  };

  const worldOf = (doc, path, origin) => {
    const root = doc.documentElement;
    const win = doc.defaultView;
    const number = documents.push(path) - 1;
    const world = {
      number, origin,
      view: {
        left: -win.scrollX, top: -win.scrollY,
        right: Math.max(root.scrollWidth, win.innerWidth) - win.scrollX,
        bottom: Math.max(root.scrollHeight, win.innerHeight) - win.scrollY,
      },
      modal: modalOf(doc), // everything else is inert then
      hovers: options.hover ? hoverTargets(doc) : new Set(),
      drawings: new Set(),
      handlers: alone ? NO_HANDLERS : (win === window ? readHandlers : win[KEY]?.readHandlers ?? (() => NO_HANDLERS))(),
    };
    for (const [element, types] of world.handlers) {
      if (!hasAny(types, CLICKS)) continue;
      for (let svg = element.ownerSVGElement; svg; svg = svg.ownerSVGElement) world.drawings.add(svg);
    }
    for (const link of doc.querySelectorAll("svg a")) {
      for (let svg = link.ownerSVGElement; svg; svg = svg.ownerSVGElement) world.drawings.add(svg);
    }
    return {
      inFront: world.modal === null,
      up: null, world, step: "", place: -1 - number, style: null, clip: world.view, rect: null,
      inside: false, pointer: false, spoken: alone !== null, exposed: true, drawing: false,
    };
  };

  const visitDocument = (doc, path, origin) => {
    const root = doc.documentElement;
    if (root) visit(root, root, `/${stepName(root, 1)}`, worldOf(doc, path, origin)); // a script may have emptied it
  };

  // `origin`: this is a frame of a page of another origin, and where it is in it.
  // Which of the elements in this document's own window are behind a shield? Of those in view, the ones that it takes the
  // pointer from; of others, those of a branch of the page of which all that is in view is behind it.
  const findCovered = () => {
    const shield = candidates.length ? shieldOf(document) : null;
    if (!shield) return;
    const screen = { left: 0, top: 0, right: window.innerWidth, bottom: window.innerHeight };
    const branches = new Map(); // the child of an ancestor of the shield that an element is in -> whether it is behind
    const branchOf = (element) => {
      let branch = element;
      for (let up = above(branch); up && !plain(up).contains(shield); up = above(up)) branch = up;
      return branch;
    };
    const standing = elements.map((element) => (element.ownerDocument === document ? element : frameAround(element)));
    const behind = standing.map((element) => {
      if (shield.contains(element) || element.contains(shield)) return false;
      const points = pointsOf(element, screen);
      if (!points.length) return null;
      const covered = !points.some(([x, y]) => takesPointer(element, x, y));
      const branch = branchOf(element);
      branches.set(branch, covered && branches.get(branch) !== false);
      return covered;
    });
    for (const [i, candidate] of candidates.entries()) {
      candidate.covered = behind[i] ?? branches.get(branchOf(standing[i])) === true;
    }
  };
  const frameAround = (element) => {
    let frame = element;
    while (frame.ownerDocument !== document) frame = frame.ownerDocument.defaultView.frameElement;
    return frame;
  };

  const pageOrigin = () => options.origin ?? { x: window.scrollX, y: window.scrollY };
  const whole = () => {
    visitDocument(document, [], pageOrigin());
    const counts = new Map();
    for (const candidate of candidates) {
      const key = `${candidate.kind} ${candidate.value}\n${candidate.frame}\n${candidate.role}\n${candidate.name}`;
      candidate.nth = counts.get(key) || 0;
      counts.set(key, candidate.nth + 1);
    }
    if (window === window.top) findCovered();
    return {
      steps, parents, veiled, documents, candidates, elements, segments, segmentsCut, pathOf, foreign,
      cut: exposed >= MAX_EXPOSED,
    };
  };

  const above = (node) => {
    const parent = plain(node).parentNode;
    if (parent?.nodeType === 9) return parent === document ? null : parent.defaultView.frameElement;
    return parent?.nodeType === 11 ? parent.host : parent;
  };
  // What the whole look would say of `alone`: as candidates, none when it is not exposed.
  const ofAlone = () => {
    const line = []; // its ancestors and itself, outermost first
    for (let node = shown; node; node = above(node)) line.unshift(node);
    let below = worldOf(document, [], pageOrigin());
    for (const node of line) {
      const doc = node.ownerDocument;
      if (node === doc.documentElement && doc !== document) {
        if (!below.exposed) break;
        below = worldOf(doc, [], originIn(doc.defaultView.frameElement, below.rect, below.world.origin));
      }
      const element = plain(node);
      below = enter(node, element, element.localName, "", below);
      if (!below) break;
    }
    return candidates;
  };

  const within = (work) => () => {
    styles = new Map();
    names = new Map();
    visibles = new Map();
    editable = innerWaygraphs(window).next().done ? document.querySelector("[contenteditable]") !== null : null;
    try {
      return work();
    } finally {
      styles = names = visibles = editable = null;
    }
  };
  return { whole: within(whole), ofAlone: within(ofAlone) };
};
