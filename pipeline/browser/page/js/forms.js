// Provides what the controls of a page allow: its forms and groups of controls, what they are for, and a JSON Schema of their
// inputs. The schema of a form is what the browser derives when attributes declare it as a tool, as far as that is valid
// JSON Schema. Values of fields are never part of it.

const MAX_ENUM = 500; // options of one list; of a longer one the schema says only that it is a text

const formElements = formGetter("elements");
const GROUPS = "[role=search], search, [role=form], fieldset, [role=group], [role=radiogroup], [role=toolbar]";
const HEADINGS = "h1, h2, h3, h4, h5, h6, [role=heading]";
/** Parts of a page: a heading outside of one says nothing of what is inside. */
const PARTS_OF_PAGE = "body, main, header, footer, nav, aside, dialog, [role=dialog], [role=alertdialog], section, article, li, tr";
const NO_INPUTS = new Set(["hidden", "submit", "button", "reset", "image", "file"]);
const CHOICES = new Set(["radio", "checkbox"]);

/** A form, or a group of controls that belong to none. */
/** @typedef {{ node: any, element: any, isForm: boolean, controls: any[], buttons: any[], role: string, name: string }} ControlBox */

/** Whether an agent can fill a control. @param {any} control */
const isFillable = (control) => {
  const tag = control.localName;
  if (tag !== "input" && tag !== "select" && tag !== "textarea") return false;
  if (tag === "input" && NO_INPUTS.has(control.type)) return false;
  return !control.matches(":disabled") && (CHOICES.has(control.type) || !control.readOnly);
};
/** @param {any} node @param {any[]} all @returns {ControlBox} */
const controlBox = (node, all) => {
  const element = unclobbered(node);
  const role = outlineRole(node, element) || "form";
  const [controls, buttons] = [all.filter(isFillable), all.filter((one) => one.matches(BUTTONS))];
  return { node, element, isForm: element.localName === "form", controls, buttons, role, name: authorName(node, role) };
};
/** Whether a button submits its form. @param {any} button */
const isSubmit = (button) => ["submit", "image"].includes(button.type) && ["button", "input"].includes(button.localName);
/**
 * Whether Enter sends a form without submit button to an address of its own, which buttons that clear or fill its field do not.
 * @param {ControlBox} box
 */
const isSentByEnter = ({ element, controls }) =>
  /^(?!#|javascript:)./i.test((element.getAttribute("action") ?? "").trim()) &&
  controls.filter((one) => isTextField(one) && one.localName !== "textarea").length === 1;
/**
 * The buttons that may send a form or group: the one that submits it, else all that a script may have made for it. If it is a form
 * and there is none, it is submitted without a button.
 * @param {ControlBox} box
 * @returns {any[]}
 */
const sendersOf = (box) => {
  const submits = box.buttons.filter(isSubmit);
  // Outside of a form, a button that submits is one that nobody gave a type.
  if (submits.length === 1 || (box.isForm && submits.length > 1)) return [submits[0]];
  if (box.isForm && isSentByEnter(box)) return [];
  return box.buttons.filter((one) => one.type !== "reset" && one.checkVisibility(VISIBLE_OR_TRANSPARENT));
};
/** @param {any} form */
const formBox = (form) => {
  const all = Array.from(formElements.call(form));
  // No elements of the form, for the browser.
  const others = inForm(form, "input[type=image], [role=button]").filter((one) => !all.includes(one));
  const follows = (/** @type {any} */ a, /** @type {any} */ b) => (a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
  return controlBox(form, others.length > 0 ? [...all, ...others].sort(follows) : all);
};
/** @param {any} node */
const groupBox = (node) =>
  controlBox(node, [...node.querySelectorAll(`input, select, textarea, ${BUTTONS}`)].filter((one) => !one.form));
/**
 * The forms of a document, and the innermost groups outside of forms that have a text field and a button.
 * @param {Document} doc
 * @returns {ControlBox[]}
 */
const controlBoxes = (doc) => {
  const forms = inAllRoots(doc, "form").map(formBox);
  /** @type {ControlBox[]} */
  const groups = [];
  for (const node of inAllRoots(doc, GROUPS).reverse()) {
    const next = groups.at(-1); // the first one after `node` in document order
    if (next && node.contains(next.node)) continue;
    const group = groupBox(node);
    if (group.buttons.length > 0 && group.controls.some(isTextField)) groups.push(group);
  }
  return [...forms, ...groups.reverse()];
};
/**
 * Whether a person can use a form: something of it is shown, and nothing keeps it from being used.
 * @param {ControlBox} box
 * @param {Element | null} modal The dialog that makes everything else inert.
 */
const isUsableForm = ({ node, element, controls, buttons }, modal) =>
  [...controls, ...buttons].some((one) => one.checkVisibility(VISIBLE_OR_TRANSPARENT)) &&
  (!modal || isWithin(node, modal)) && element.closest("[inert], [aria-hidden=true]") === null;

// ---- names ----

const ACCENTS = /[\u0300-\u036f]/g;
/** A text as an identifier, empty if it has no letters of the alphabet. @param {string} text */
const identifierOf = (text) =>
  (text.normalize("NFKD").replace(ACCENTS, "").toLowerCase().match(/[a-z0-9]+/g) ?? []).join("_").slice(0, 64).replace(/_$/, "");
/** The text of the first heading in an element. @param {any} element */
const headingIn = (element) => {
  const heading = element.querySelector(HEADINGS);
  return heading ? contentText(heading) : "";
};
/**
 * The headings in an element, each with the part of the page that it belongs to, or null if several forms are in the element.
 * @param {Element} box
 * @returns {[heading: Element, part: Element | null][] | null}
 */
const headingsOf = (box) => {
  let found = headingsByBox?.get(box);
  if (found === undefined) {
    /** @type {(heading: Element) => [Element, Element | null]} */
    const withPart = (heading) => [heading, heading.closest(PARTS_OF_PAGE)];
    found = box.querySelectorAll("form").length > 1 ? null : Array.from(box.querySelectorAll(HEADINGS), withPart);
    headingsByBox?.set(box, found);
  }
  return found;
};
/**
 * The heading of the closest box around a form that has one, in the same part of the page, if no other form is in the box.
 * @param {ControlBox} box
 */
const headingAround = ({ node, element }) => {
  for (let box = element.parentElement; box; box = parentOf(box)) {
    const headings = headingsOf(box);
    if (!headings) return "";
    const [heading] = headings.find(([, part]) => part?.contains(node) !== false) ?? [];
    if (heading || box.matches(PARTS_OF_PAGE)) return heading ? contentText(heading) : "";
  }
  return "";
};
/**
 * What a form is for, and a further text that says so. A button alone often says too little ("Delete", "Send"), and so does
 * the heading around a form ("Blue mug").
 * @param {ControlBox} box
 * @returns {[title: string, more: string]}
 */
const purposeOf = (box) => {
  const { element, isForm, controls, name } = box;
  const legends = isForm ? element.querySelectorAll("legend") : [];
  const senders = sendersOf(box);
  const pressed = senders.length === 1 ? nameOf(senders[0], "button") : "";
  const own = name || (legends.length === 1 && contentText(legends[0])) || headingIn(element);
  if (own) return [own, pressed === own ? "" : pressed];
  const around = headingAround(box);
  const page = squeeze(documentTitle.call(unclobbered(box.node).ownerDocument));
  // A heading that is a part of the page's title may be the name of the site (Fossil). Numbers in titles may be counters.
  const isPart = around !== "" && page.includes(around) && !/\d/.test(page.replace(around, ""));
  const place = !pressed && isPart ? page : around;
  const title = [pressed, place].filter((text) => text).join(": ");
  return [squeeze(title || controls.map(controlText).find((text) => text) || ""), ""];
};
/** The text that describes an element: `aria-describedby`, or `aria-description`. @param {any} element */
const describedText = (element) =>
  squeeze((element.ariaDescribedByElements ?? []).map(contentText).join(" ") || element.getAttribute("aria-description") || "");

// ---- schemas ----

/** @type {Record<string, any>} */
const TEXT_SCHEMAS = {
  email: { format: "email" }, url: { format: "uri" }, date: { format: "date" }, password: { format: "password" },
  time: { pattern: "^([01][0-9]|2[0-3]):[0-5][0-9]$" }, month: { pattern: "^[0-9]{4}-(0[1-9]|1[0-2])$" },
  week: { pattern: "^[0-9]{4}-W(0[1-9]|[1-4][0-9]|5[0-3])$" }, color: { pattern: "^#[0-9a-fA-F]{6}$" },
  "datetime-local": { pattern: "^[0-9]{4}-(0[1-9]|1[0-2])-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]$" },
};
/** @param {any} control */
const numberSchema = (control) => {
  /** @type {any} */
  const schema = { type: "number" };
  const isRange = control.type === "range";
  const given = (/** @type {string} */ name) => {
    const value = control.getAttribute(name)?.trim();
    return value && Number.isFinite(+value) ? +value : undefined;
  };
  const [minimum, maximum] = [given("min") ?? (isRange ? 0 : undefined), given("max") ?? (isRange ? 100 : undefined)];
  if (minimum !== undefined) schema.minimum = minimum;
  if (maximum !== undefined) schema.maximum = isRange ? Math.max(minimum ?? 0, maximum) : maximum;
  if (control.step.toLowerCase() === "any") return schema;
  const step = +control.step > 0 ? +control.step : 1;
  // Steps count from the minimum, or the first value, multiples from zero.
  const steps = (given("min") ?? given("value") ?? 0) / step;
  if (Math.round(steps * 1e6) % 1e6 === 0) schema.multipleOf = step;
  return schema;
};
/** @param {any} control */
const textSchema = (control) => {
  const { type } = control;
  /** @type {any} */
  const schema = { type: "string" };
  if (Object.hasOwn(TEXT_SCHEMAS, type) && !control.multiple) Object.assign(schema, TEXT_SCHEMAS[type]);
  if (control.minLength > 0) schema.minLength = control.minLength;
  if (control.maxLength >= 0) schema.maxLength = control.maxLength;
  if (control.localName === "input" && control.pattern && !schema.pattern) schema.pattern = `^(?:${control.pattern})$`;
  return schema;
};
/**
 * @param {Iterable<any>} options
 * @param {(option: any) => string} titleOf
 */
const choiceSchema = (options, titleOf) => {
  /** @type {Map<string, any>} */
  const unique = new Map();
  for (const option of options) {
    if (!unique.has(option.value)) unique.set(option.value, option);
    if (unique.size > MAX_ENUM) break;
  }
  if (unique.size === 0 || unique.size > MAX_ENUM) return { type: "string" };
  const anyOf = Array.from(unique, ([value, option]) => {
    const title = titleOf(option);
    return { type: "string", const: value, ...(title ? { title } : {}) };
  });
  return { type: "string", anyOf, enum: [...unique.keys()] };
};
/** The options of a list but for those of disabled groups; browsers count single ones that are disabled. @param {any} select */
const optionsIn = (select) => Array.from(select.options).filter((/** @type {any} */ one) => !one.matches("optgroup:disabled *"));
/** @param {any} items */
const listSchema = (items) => ({ type: "array", items, uniqueItems: true });
/** What the page says of a control. @param {any} control */
const controlText = (control) => givenName(control, roleOf(control)) || fieldText(control);
/**
 * The schema of controls that have one name, null if no value can be given for them.
 * @param {any[]} controls
 */
const propertySchema = (controls) => {
  const [first, ...others] = controls;
  if (others.length > 0 && (!CHOICES.has(first.type) || others.some((one) => one.type !== first.type))) return null;
  const choices = () => choiceSchema(controls, controlText);
  if (first.type === "radio") return choices();
  if (first.type === "checkbox") return others.length > 0 ? listSchema(choices()) : { type: "boolean" };
  if (first.localName === "select") {
    const items = choiceSchema(optionsIn(first), (one) => squeeze(one.label));
    return first.multiple ? listSchema(items) : items;
  }
  return first.type === "number" || first.type === "range" ? numberSchema(first) : textSchema(first);
};
/**
 * What describes controls of one name: a choice among several is described by what holds them.
 * @param {any[]} controls
 */
const propertyText = (controls) => {
  const given = controls.map((one) => one.getAttribute("toolparamdescription")).find((text) => text);
  if (given) return toolText(given, MAX_TOOL_TEXT);
  const [control] = controls;
  if (controls.length === 1 && control.type !== "radio") return controlText(control);
  const group = control.closest("fieldset, [role=radiogroup], [role=group]");
  return group ? authorName(group, "group") : "";
};
/** @param {any} control */
const propertyName = (control) => {
  const stable = control.id && !/\d{3,}|:/.test(control.id) ? control.id : "";
  return squeeze(control.getAttribute("name") || stable || identifierOf(controlText(control)), MAX_TOOL_NAME);
};
/**
 * The controls of a form by the name of their property, in document order.
 * @param {ControlBox} box
 * @returns {Map<string, any[]>}
 */
const propertiesOf = ({ controls }) => {
  /** @type {Map<string, any[]>} */
  const properties = new Map();
  for (const control of controls) {
    const name = propertyName(control);
    if (name) properties.set(name, [...(properties.get(name) ?? []), control]);
  }
  return properties;
};
/**
 * JSON Schema of the inputs of a form.
 * @param {ControlBox} box
 */
const inputSchema = (box) => {
  /** @type {[string, any][]} */
  const properties = [];
  const required = [];
  for (const [name, controls] of propertiesOf(box)) {
    const schema = propertySchema(controls);
    if (!schema) continue;
    const description = propertyText(controls);
    properties.push([name, description ? { ...schema, description } : schema]);
    if (controls.some((one) => one.required)) required.push(name);
  }
  // Not an object literal: `__proto__` is a name like all others.
  const pairs = properties.map(([name, schema]) => `${stringify(name)}:${stringify(schema)}`);
  return `{"type":"object","properties":{${pairs.join(",")}},"required":${stringify(required)}}`;
};
