// What does an app of plain custom elements look like to an explorer? Closed and open shadow roots, delegated listeners.
const find = (name) => `found: ${APP}-${name}`;
const here = () =>
  ROUTING === "hash" ? location.hash.replace(/^#\/?/, "") : decodeURI(location.pathname).slice(BASE.length);
const href = (view) => (ROUTING === "hash" ? `${BASE}#/${view}` : BASE + view);
const link = (view, text) => `<a href="${href(view)}">${APP} ${text}</a>`;

// One listener for all: what a box does is written in its attributes.
customElements.define(
  "reacting-box",
  class extends HTMLElement {
    connectedCallback() {
      const root = this.attachShadow({ mode: "open" });
      root.innerHTML = `<slot></slot><section id=shown></section>`;
      this.addEventListener(this.getAttribute("on"), () => {
        root.querySelector("#shown").innerHTML = `<p>${find(this.getAttribute("shows"))}</p>`;
      });
    }
  },
);

customElements.define(
  "menu-button",
  class extends HTMLElement {
    connectedCallback() {
      const root = this.attachShadow({ mode: "closed" });
      root.innerHTML = `<button aria-haspopup=menu>${APP} menu</button><ul role=menu hidden><li role=menuitem>${APP} choice</li></ul>`;
      const menu = root.querySelector("ul");
      root.querySelector("button").addEventListener("click", () => (menu.hidden = !menu.hidden));
      menu.addEventListener("click", () => {
        menu.hidden = true;
        root.append(Object.assign(document.createElement("p"), { textContent: find("choice") }));
      });
    }
  },
);

customElements.define(
  "tab-set",
  class extends HTMLElement {
    connectedCallback() {
      const root = this.attachShadow({ mode: "open" });
      const show = (n) => {
        root.innerHTML = `<div role=tablist><button role=tab>${APP} first tab</button><button role=tab>${APP} second tab</button></div>
          ${n === 1 ? "<p>One</p>" : `<blockquote>${find("tab-2")}</blockquote>`}`;
        root.querySelectorAll("button").forEach((button, i) => button.addEventListener("click", () => show(i + 1)));
      };
      show(1);
    }
  },
);

// What is on the pages does not depend on how they are routed: it is there, and clicked, in one of the two apps.
const HOME = ROUTING === "hash" ? `<main><h1>${find("home")}</h1></main>` : `<main><h1>${find("home")}</h1><menu-button></menu-button>
  <button id=opens>${APP} dialog</button><dialog id=dialog><p>${find("modal")}</p><button id=done>Done</button></dialog>
  <tab-set></tab-set>
  <reacting-box on=click shows=clicked>${APP} plain box</reacting-box>
  <reacting-box on=dblclick shows=twice>${APP} double box</reacting-box>
  <reacting-box on=mouseenter shows=entered>${APP} hover box</reacting-box>
  <reacting-box on=keydown shows=key><label>${APP} key field<input></label></reacting-box></main>`;

const view = (path) => {
  if (path === "list") return `<main><h2>${find("list")}</h2><ul><li>${link("item/1", "item 1")}<li>${link("item/2", "item 2")}</ul></main>`;
  if (path === "about") return `<main><p>${find("about")}</p></main>`;
  if (path.startsWith("item/")) return `<main><article>${find(path.replace("/", "-"))}</article></main>`;
  return HOME;
};

const root = document.querySelector("#app");
const show = () => {
  root.innerHTML = `<nav>${link("", "home")} ${link("list", "list")} ${link("about", "about")}</nav>${view(here())}`;
};
root.addEventListener("click", (event) => {
  const { id } = event.target;
  if (id === "opens") root.querySelector("dialog").showModal();
  if (id === "done") root.querySelector("dialog").close();
  const anchor = event.target.closest("a");
  if (!anchor || ROUTING === "hash") return;
  event.preventDefault();
  history.pushState({}, "", anchor.href);
  show();
});
for (const type of ["popstate", "hashchange"]) addEventListener(type, show);
show();
