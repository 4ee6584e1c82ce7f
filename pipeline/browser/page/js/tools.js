// Provides the tools of a page: what one can do on it, with a JSON Schema of the inputs. The page declares them (webmcp.js), or
// its forms show them (forms.js). Nothing here calls a declared tool.
//
// Callers use three functions of `window["\0waygraph"]`, besides `observe`, whose snapshots contain the tools:
//   tools()                    JSON of `pageTools`
//   fillTool(element, values, expected)  fill the controls of a form, see `fillTool`; nothing is submitted
//   submitTool()               submit the form that was filled, see `submitTool`
//   resetTool(element)         set it back
// `element` is `Tool.element` as JSON, in this document or in a frame of its origin; in a frame of another origin, call them
// there, with the rest of `element.frame`.

const MAX_SCHEMAS = 1_048_576; // characters of all schemas of a page


/**
 * How a form is submitted: method and address, empty if nothing tells. A script that takes the submission of a form without
 * address and method may do anything with it, and so may a button that does not submit it; the browser submits by itself what is
 * declared so. The address is empty as well if the form has none and is sent to that of its page,
 * and has no query: a form that is on many pages is one tool, with whatever its address hands on from the page or the session.
 * @param {ControlBox} box
 * @returns {[method: string, target: string]}
 */
const submissionTarget = (box) => {
  const { node, element, isForm } = box;
  if (!isForm) return ["", ""];
  const isDeclared = element.hasAttribute("toolname") && element.hasAttribute("toolautosubmit");
  const [button] = isDeclared ? box.buttons.filter(isSubmit) : sendersOf(box);
  if (button && !isSubmit(button)) return ["", ""];
  const given = ["action", "method"].some((name) => element.getAttribute(name) || button?.getAttribute(`form${name}`));
  if (!given && unclobbered(node).ownerDocument.defaultView[KEY]?.isHandled(node, ["submit"])) return ["", ""];
  const method = (button?.getAttribute("formmethod") || formMethod.call(node)).toUpperCase();
  if (method === "DIALOG") return ["dialog", ""];
  const own = element.getAttribute("action") ? formAction.call(node) : "";
  const address = button?.getAttribute("formaction") ? button.formAction : own;
  const target = /^https?:/i.test(address) ? address.replace(/[?#].*$/s, "") : "";
  return [method, target.toWellFormed()];
};
/**
 * How to find a form again, see `Action`.
 * @param {ControlBox} box
 * @param {ControlBox[]} all All of its document.
 * @param {string[]} frame
 */
const locatorOf = (box, all, frame) => {
  const { node, role, name } = box;
  const same = all.filter((one) => one.role === role && one.name === name);
  return { role, name, nth: same.indexOf(box), xpath: fullPathOf(node), css: stableSelector(node), frame };
};

/**
 * The tools of this page: those that it declares, and those that its forms show, each document's in turn.
 *
 * A declared one has the schema that the browser, or a polyfill, gives for it. A form whose attributes declare a tool that
 * neither lists is declared as well, if there is no WebMCP here; else the browser refused it, and the form counts like any other.
 */
const pageTools = () =>
  withCaches(() => {
    /** @type {any[]} */
    const tools = [];
    let [toolsCut, schemasCut, characters] = [restlessTools, 0, 0];
    const taken = new Set(declaredTools.map(({ name }) => name));
    const add = (/** @type {any} */ tool, /** @type {string} */ schema, isCut = false) => {
      const fits = schema.length <= MAX_SCHEMA && (characters += schema.length) <= MAX_SCHEMAS;
      if (isCut || !fits) schemasCut += 1;
      tools.push({ ...tool, schema: fits ? schema : ANY_SCHEMA });
    };
    /** Whether there are as many tools as one page may have; one more is counted. */
    const isFull = () => tools.length >= MAX_TOOLS && ++toolsCut > 0;
    for (const [doc, frame] of documentsOf(window)) {
      const win = doc.defaultView;
      const { origin } = win;
      const url = win === window ? "" : win.location.href;
      const boxes = controlBoxes(doc);
      const declared = declaredTools.filter((tool) => tool.win === win);
      /** @type {Map<any, ControlBox>} */
      const formOf = new Map();
      const ofAttributes = new Set();
      for (const box of boxes) {
        const [name, text] = ["toolname", "tooldescription"].map((attribute) => box.element.getAttribute(attribute));
        if (!box.isForm || !name || !text) continue;
        const description = toolText(text, MAX_TOOL_TEXT);
        const tool = declared.find((one) => one.name === name && one.description === description && !formOf.has(one));
        if (tool) formOf.set(tool, box);
        if (tool || !isNative(contextGetter) || !win.isSecureContext) ofAttributes.add(box);
      }
      for (const tool of declared.sort((a, b) => (a.name < b.name ? -1 : 1))) {
        if (isFull()) continue;
        const { name, title, description, schema, isCut, hints } = tool;
        const box = formOf.get(tool);
        const [method, target] = box ? submissionTarget(box) : ["", ""];
        const source = box && tool.source === "script" ? "form" : tool.source;
        const element = box ? locatorOf(box, boxes, frame) : null;
        const autosubmit = box?.element.hasAttribute("toolautosubmit") ?? false;
        const more = { element, method, target, autosubmit, ...hints, readOnly: hints.readOnly || method === "GET" };
        add({ name, title, description, source, origin, url, ...more }, source === "form" ? mendedFormSchema(schema) : schema, isCut);
      }
      const modal = boxes.length > 0 ? modalOf(doc) : null;
      const matched = new Set(formOf.values());
      for (const box of boxes) {
        if (matched.has(box)) continue;
        const isDeclared = ofAttributes.has(box);
        if ((!isDeclared && !isUsableForm(box, modal)) || isFull()) continue;
        const [method, target] = submissionTarget(box);
        const common = {
          origin, url, element: locatorOf(box, boxes, frame), method, target, untrusted: false, consequential: false,
          autosubmit: isDeclared && box.element.hasAttribute("toolautosubmit"), readOnly: method === "GET",
        };
        if (isDeclared) {
          const name = toolText(box.element.getAttribute("toolname"), MAX_TOOL_NAME);
          const description = toolText(box.element.getAttribute("tooldescription"), MAX_TOOL_TEXT);
          taken.add(name);
          add({ name, title: "", description, source: "form", ...common }, inputSchema(box));
          continue;
        }
        const [title, more] = purposeOf(box);
        const description = describedText(box.element) || more;
        const stem = identifierOf(title) || identifierOf(target.replace(/^.*\//s, "")) || (box.role === "search" ? "search" : "form");
        let name = stem;
        for (let n = 2; taken.has(name); n++) name = `${stem}_${n}`;
        taken.add(name);
        add({ name, title, description, source: "inferred", ...common }, inputSchema(box));
      }
    }
    return { tools, toolsCut, schemasCut };
  });

// ---- use of inferred tools ----

/**
 * The form that `fillTool` filled in this page: a handler may add another one of the same name, or exchange places.
 * `leaves` is whether another document has been requested since. @type {{ node: any, xpath: string, leaves: boolean, end: () => void } | null}
 */
let filledForm = null;
/** What was known of a form before it is filled; no schema: not compared. */
/** @typedef {{ method: string, target: string, schema: string }} ExpectedForm */

/**
 * The form or group of a tool: at its path, else by its selector, else by role and name.
 * @param {RecordedAction} action
 * @param {ExpectedForm} [expected]
 * @returns {ControlBox | undefined}
 */
const findBox = ({ role, name, nth, xpath, css, frame }, expected) => {
  const { doc } = followFrames(frame);
  const boxes = doc ? controlBoxes(doc) : [];
  const same = boxes.filter((box) => box.role === role && box.name === name);
  const node = doc && resolve(xpath, doc);
  const isExpected = (/** @type {ControlBox} */ box) => {
    if (!expected) return true;
    const [method, target] = submissionTarget(box);
    if (method !== expected.method || target !== expected.target) return false;
    return !expected.schema || inputSchema(box) === expected.schema;
  };
  const found = [same.find((box) => box.node === node), boxes.find((box) => css && stableSelector(box.node) === css), same[nth]];
  return found.find((box) => box && isExpected(box));
};
/** The form that was filled, as it is now, if it is still there. @returns {ControlBox | undefined} */
const filledBox = () => {
  const node = filledForm?.node;
  return node?.isConnected ? controlBoxes(unclobbered(node).ownerDocument).find((box) => box.node === node) : undefined;
};
/**
 * Set the controls of one property, as a person would, with the events of that; returns why a value is not accepted, or "".
 * @param {any[]} controls
 * @param {any} value
 * @returns {string}
 */
const setProperty = (controls, value) => {
  const [control] = controls;
  const press = (/** @type {any} */ one) => control.ownerDocument.defaultView.HTMLElement.prototype.click.call(one);
  if (control.type === "checkbox" && controls.length === 1) {
    if (control.checked !== Boolean(value)) press(control);
    return "";
  }
  const wanted = (Array.isArray(value) ? value : [value]).map(String);
  const options = control.localName === "select" ? Array.from(control.options) : controls;
  if (CHOICES.has(control.type) || control.localName === "select") {
    const unknown = wanted.find((text) => !options.some((one) => one.value === text && !one.matches(":disabled")));
    if (unknown !== undefined) return `no choice ${squeeze(unknown)}`;
  }
  if (CHOICES.has(control.type)) {
    const isWanted = (/** @type {any} */ one) => wanted.includes(one.value);
    // A radio button that is not wanted goes off by itself.
    for (const one of controls) if (one.checked !== isWanted(one) && (one.type === "checkbox" || isWanted(one))) press(one);
    return "";
  }
  control.focus({ preventScroll: true });
  if (control.localName === "select") {
    for (const one of options) if (control.multiple || one.value === wanted[0]) one.selected = wanted.includes(one.value);
    dispatchInput(control);
    return "";
  }
  const text = wanted.join(",");
  const result = setValue(control, control.localName === "textarea" ? text.replace(/\r\n?/g, "\n") : text);
  return result.obstacle?.[1] ?? "";
};
/** A text without what pages add to one that is typed: signs and spaces, another case. @param {string} text */
const plainText = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "") || text;
/**
 * Note whether the document of a form is about to be replaced.
 * @param {any} node
 * @param {string} xpath
 */
const watchForm = (node, xpath) => {
  const { navigation } = unclobbered(node).ownerDocument.defaultView;
  const watched = { node, xpath, leaves: false, end: () => nativeRemoveListener.call(navigation, "navigate", onNavigate) };
  const onNavigate = (/** @type {any} */ event) => {
    if (event.isTrusted && !event.destination.sameDocument) watched.leaves = true;
  };
  nativeAddListener.call(navigation, "navigate", onNavigate);
  return watched;
};
/**
 * Whether the controls of a property have a value that was set.
 * @param {any[]} controls
 * @param {any} value
 */
const hasValue = (controls, value) => {
  const [control] = controls;
  if (control.type === "checkbox" && controls.length === 1) return control.checked === Boolean(value);
  const wanted = (Array.isArray(value) ? value : [value]).map(String);
  const isSelect = control.localName === "select";
  if (!isSelect && !CHOICES.has(control.type)) return plainText(control.value) === plainText(wanted.join(","));
  const options = isSelect ? Array.from(control.options) : controls;
  const chosen = new Set(options.filter((one) => one.selected || one.checked).map((one) => one.value));
  return chosen.size === new Set(wanted).size && wanted.every((one) => chosen.has(one));
};
/**
 * Fill the controls of a tool, in document order. The form is not submitted. A field may change others, and a script may draw
 * the form anew: controls are looked up for each property, and the values are read back when all are set.
 * @param {RecordedAction} action `Tool.element`.
 * @param {Record<string, any>} values By name of the property.
 * @param {ExpectedForm} [expected] The form must be so, or it is not here.
 * @returns {Promise<{ found: boolean, filled: string[], missing: string[], rejected: [name: string, reason: string][] }>} Whether the
 *   form is here; the properties that were set; those for which it has no control; those whose values it does not accept or keep.
 */
const fillTool = async (action, values, expected) => {
  const box = withNatives(() => {
    const found = withCaches(() => findBox(action, expected));
    filledForm?.end();
    filledForm = found ? watchForm(found.node, action.xpath) : null;
    return found;
  });
  /** @type {Awaited<ReturnType<typeof fillTool>>} */
  const result = { found: box !== undefined, filled: [], missing: [], rejected: [] };
  if (!box) return result;
  const propertiesNow = () =>
    withCaches(() => {
      const now = box.node.isConnected ? (box.isForm ? formBox : groupBox)(box.node) : findBox(action, expected);
      return now ? propertiesOf(now) : new Map();
    });
  withNatives(() => {
    const inOrder = new Set([...propertiesNow().keys(), ...Object.keys(values)]);
    noteAction();
    for (const name of [...inOrder].filter((each) => Object.hasOwn(values, each))) {
      const controls = propertiesNow().get(name);
      const reason = controls && setProperty(controls, values[name]);
      if (!controls) result.missing.push(name);
      else if (reason) result.rejected.push([name, reason]);
      else result.filled.push(name);
    }
  });
  await new Promise((resolve) => nativeSetTimeout(resolve, 0)); // frameworks draw when the events are over
  withNatives(() => {
    const properties = propertiesNow();
    const isKept = (/** @type {string} */ name) => properties.has(name) && hasValue(properties.get(name), values[name]);
    const lost = result.filled.filter((name) => !isKept(name));
    result.filled = result.filled.filter((name) => !lost.includes(name));
    for (const name of lost) result.rejected.push([name, "the page does not keep the value"]);
  });
  return result;
};
/**
 * Set the controls of a form to what they were when the page was loaded; nothing is done to a group without a form.
 * @param {RecordedAction} action `Tool.element`.
 */
const resetTool = (action) => {
  const box = withCaches(() => (filledForm?.xpath === action.xpath ? filledBox() : findBox(action)));
  if (box?.isForm) unclobbered(box.node).ownerDocument.defaultView.HTMLFormElement.prototype.reset.call(box.node);
};
/**
 * Submit the form that was filled, or press the only button that it, or its group, has for that. A form that the browser finds
 * incomplete is not submitted.
 * @typedef {{ found: boolean, submitted: boolean, prevented: boolean, leaves: boolean, invalid: string[] }} Submission
 * @returns {Submission & { pressed: string, choices: string[] }} `invalid`: names of the properties that lack a valid value.
 *   `prevented`: no submission followed by itself; a script may have sent something. `leaves`: a script has submitted it, or
 *   loads another document; nothing more was done. `pressed`: name of a button that does not submit by itself. `choices`: names of
 *   several such buttons, of which none was pressed.
 */
const submitTool = () => {
  /** @type {ReturnType<typeof submitTool>} */
  const result = { found: true, submitted: false, prevented: false, leaves: false, invalid: [], pressed: "", choices: [] };
  filledForm?.end();
  if (filledForm?.leaves) return { ...result, leaves: true };
  const box = withCaches(filledBox);
  if (!box) return { ...result, found: false };
  const senders = withCaches(() => sendersOf(box));
  const names = senders.map((one) => nameOf(one, "button"));
  if (senders.length > 1) return { ...result, choices: names };
  const button = senders[0] ?? null;
  const isSubmitted = box.isForm && (!button || isSubmit(button));
  const isChecked = isSubmitted && !box.element.noValidate && !button?.formNoValidate;
  const all = isChecked ? Array.from(formElements.call(box.node)).filter((one) => one.localName !== "fieldset") : [];
  const invalid = [...new Set(all.filter((one) => one.matches(":invalid")).map(propertyName))];
  if (invalid.length > 0) return { ...result, invalid };
  noteAction();
  const win = unclobbered(box.node).ownerDocument.defaultView;
  if (!isSubmitted) {
    if (!button) return { ...result, found: false };
    win.HTMLElement.prototype.click.call(button);
    return { ...result, submitted: true, pressed: names[0] || "without a name" };
  }
  /** @type {any} */
  let submission = null;
  const onSubmit = (/** @type {any} */ event) => {
    if (event.target === box.node) submission = event;
  };
  nativeAddListener.call(win, "submit", onSubmit, true);
  win.HTMLFormElement.prototype.requestSubmit.call(box.node, button);
  nativeRemoveListener.call(win, "submit", onSubmit, true);
  return { ...result, submitted: true, prevented: !submission || submission.defaultPrevented };
};
