// What does a React app look like to an explorer? Function components, one delegated listener per event at the root.
const React = load("react");
const { createRoot } = load("react-dom/client");
const { flushSync } = load("react-dom");
const h = React.createElement;
const { useEffect, useState } = React;

const find = (name) => `found: ${APP}-${name}`;
const here = () =>
  ROUTING === "hash" ? location.hash.replace(/^#\/?/, "") : decodeURI(location.pathname).slice(BASE.length);
const href = (view) => (ROUTING === "hash" ? `${BASE}#/${view}` : BASE + view);

function Link({ to, children }) {
  const go = (event) => {
    if (ROUTING === "hash") return;
    event.preventDefault();
    history.pushState({}, "", href(to));
    dispatchEvent(new PopStateEvent("popstate"));
  };
  return h("a", { href: href(to), onClick: go }, children);
}

function Home() {
  const [shown, setShown] = useState({ tab: 1 });
  const show = (change) => () => setShown((before) => ({ ...before, ...change }));
  // What is on the pages does not depend on how they are routed: it is there, and clicked, in one of the two apps.
  if (ROUTING === "hash") return h("main", null, h("h1", null, find("home")));
  return h(
    "main",
    null,
    h("h1", null, find("home")),
    h(
      "section",
      null,
      h("button", { "aria-haspopup": "menu", onClick: show({ menu: !shown.menu }) }, `${APP} menu`),
      shown.menu &&
        h("ul", { role: "menu" }, h("li", { role: "menuitem", onClick: show({ menu: false, choice: true }) }, `${APP} choice`)),
      shown.choice && h("p", null, find("choice")),
    ),
    h(
      "section",
      null,
      h("button", { onClick: show({ modal: true }) }, `${APP} dialog`),
      shown.modal &&
        h(
          "div",
          { role: "dialog", "aria-modal": true },
          h("p", null, find("modal")),
          h("button", { onClick: show({ modal: false }) }, "Done"),
        ),
    ),
    h(
      "section",
      null,
      h(
        "div",
        { role: "tablist" },
        h("button", { role: "tab", "aria-selected": shown.tab === 1, onClick: show({ tab: 1 }) }, `${APP} first tab`),
        h("button", { role: "tab", "aria-selected": shown.tab === 2, onClick: show({ tab: 2 }) }, `${APP} second tab`),
      ),
      shown.tab === 1 ? h("p", null, "One") : h("blockquote", null, find("tab-2")),
    ),
    h("section", null, h("div", { onClick: show({ box: true }) }, `${APP} plain box`), shown.box && h("p", null, find("clicked"))),
    h(
      "section",
      null,
      h("div", { onDoubleClick: show({ twice: true }) }, `${APP} double box`),
      shown.twice && h("p", null, find("twice")),
    ),
    h(
      "section",
      null,
      h("div", { onMouseEnter: show({ entered: true }) }, `${APP} hover box`),
      shown.entered && h("p", null, find("entered")),
    ),
    h(
      "section",
      null,
      h("label", null, `${APP} key field`, h("input", { onKeyDown: show({ key: true }) })),
      shown.key && h("p", null, find("key")),
    ),
  );
}

function List() {
  const items = [1, 2].map((n) => h("li", { key: n }, h(Link, { to: `item/${n}` }, `${APP} item ${n}`)));
  return h("main", null, h("h2", null, find("list")), h("ul", null, items));
}

const view = (path) => {
  if (path === "list") return h(List);
  if (path === "about") return h("main", null, h("p", null, find("about")));
  if (path.startsWith("item/")) return h("main", null, h("article", null, find(path.replace("/", "-"))));
  return h(Home);
};

function App() {
  const [path, setPath] = useState(here());
  useEffect(() => {
    const moved = () => setPath(here());
    addEventListener("popstate", moved);
    return () => removeEventListener("popstate", moved);
  }, []);
  const links = [["", "home"], ["list", "list"], ["about", "about"]];
  return h(
    React.Fragment,
    null,
    h("nav", null, links.map(([to, name]) => h(Link, { key: name, to }, `${APP} ${name} `))),
    view(path),
  );
}

flushSync(() => createRoot(document.querySelector("#app")).render(h(App)));
