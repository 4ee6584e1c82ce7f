// Provides what the attributes of an element declare about a click on it.

const DECLARING_ATTRIBUTE = /method$|^(?:data-)?hx-|click|onmouse|onpointer|action|command$/;
const HTMX_METHOD = /^(?:data-)?hx-(post|put|patch|delete)$/;
const METHOD_ATTRIBUTE = /^data-(?:turbo-|http-|ajax-|request-)?method$/;

/**
 * @param {any} element
 * @param {string} name Accessible name of the element.
 * @returns {{ method: string, handler: string, icon: string }} The HTTP method that a script sends instead of following the
 *   link; the text of handlers, and of attributes that frameworks treat as handlers; titles, description and classes of an
 *   element whose name has no letters.
 */
const declarationsOf = (element, name) => {
  const found = { method: "", handler: "", icon: "" };
  for (const attribute of element.getAttributeNames()) {
    if (!DECLARING_ATTRIBUTE.test(attribute)) continue;
    const value = element.getAttribute(attribute);
    const verb = HTMX_METHOD.exec(attribute);
    if (verb) found.method = verb[1];
    else if (METHOD_ATTRIBUTE.test(attribute)) found.method = value.toLowerCase().slice(0, 20).toWellFormed();
    else found.handler += ` ${value.slice(0, 200)}`;
  }
  found.handler = found.handler.trim().toWellFormed();
  if (!/\p{L}/u.test(name)) {
    const parts = [element, ...[...element.querySelectorAll("i, span, svg, use, img")].slice(0, 5)];
    const classes = parts.map((part) => `${part.getAttribute("class") || ""} ${part.getAttribute("href") || ""}`);
    const titles = parts.map((part) => part.getAttribute("title") || "");
    const described = [element.getAttribute("aria-description") ?? "", ...(element.ariaDescribedByElements ?? []).map(contentText)];
    found.icon = squeeze([...titles, ...described, ...classes].join(" "));
  }
  return found;
};

const ENTRY = "input:not([type=submit],[type=button],[type=reset],[type=image],[type=checkbox],[type=radio]), select, textarea";
const MAX_LOGIN_ENTRIES = 3; // organisation, user, password

/**
 * Whether a form lets somebody in, or unlocks something: it has one password field and few others. Forms that set a
 * password ask for it twice, or say so, or have the other fields of an account. On their pages a form with a password
 * alone confirms who acts.
 */
const asksLogin = () => {
  /** @type {Map<Element | null, any[]>} */
  const forms = new Map();
  for (const field of /** @type {Iterable<any>} */ (document.querySelectorAll(ENTRY))) {
    if (!field.checkVisibility(VISIBLE)) continue;
    const form = field.form ?? field.closest("dialog, [role=dialog], [role=form]");
    forms.set(form, [...(forms.get(form) ?? []), field]);
  }
  const passwords = (/** @type {any[]} */ fields) => fields.filter((field) => field.type === "password").length;
  const sets = (/** @type {any[]} */ fields) => passwords(fields) > 1 || fields.some((field) => field.autocomplete === "new-password");
  const all = [...forms.values()];
  const setsAny = all.some(sets);
  return all.some(
    (fields) =>
      passwords(fields) === 1 && !sets(fields) && fields.length <= MAX_LOGIN_ENTRIES && (fields.length > 1 || !setsAny),
  );
};

/** Whether a password field is visible; hidden login dialogs, which many pages have, do not count. */
const hasPasswordField = () =>
  [...document.querySelectorAll("input[type=password]")].some((field) => field.checkVisibility(VISIBLE));
