// What do attributes say that a click on an element does?

const TELLING = /method$|^(?:data-)?hx-|click|onmouse|onpointer|action|command$/;
const HX_METHOD = /^(?:data-)?hx-(post|put|patch|delete)$/;
const METHOD = /^data-(?:turbo-|http-|ajax-|request-)?method$/;

// `method`: what a script will send instead of following the link; `handler`: the text of handlers and of what frameworks
// read as such; `icon`: classes, for an element whose name has no letters.
const declared = (element, name) => {
  const said = { method: "", handler: "", icon: "" };
  for (const attribute of element.getAttributeNames()) {
    if (!TELLING.test(attribute)) continue;
    const value = element.getAttribute(attribute);
    const verb = HX_METHOD.exec(attribute);
    if (verb) said.method = verb[1];
    else if (METHOD.test(attribute)) said.method = value.toLowerCase().slice(0, 20).toWellFormed();
    else said.handler += ` ${value.slice(0, 200)}`;
  }
  said.handler = said.handler.trim().toWellFormed();
  if (!/\p{L}/u.test(name)) {
    const parts = [element, ...[...element.querySelectorAll("i, span, svg, use, img")].slice(0, 5)];
    const classes = parts.map((part) => `${part.getAttribute("class") || ""} ${part.getAttribute("href") || ""}`);
    said.icon = squeeze(`${element.title || ""} ${classes.join(" ")}`);
  }
  return said;
};

// A field for a password that can be seen; login dialogs that wait hidden in every page do not count.
const asksForPassword = () =>
  [...document.querySelectorAll("input[type=password]")].some((field) => field.checkVisibility(FULLY));
