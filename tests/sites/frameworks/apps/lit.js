// What does an app of Lit elements look like to an explorer? Every view in a shadow root of its own, all of them open.
import { LitElement, html, nothing } from "lit";

const find = (name) => `found: ${APP}-${name}`;
const here = () =>
  ROUTING === "hash" ? location.hash.replace(/^#\/?/, "") : decodeURI(location.pathname).slice(BASE.length);
const href = (view) => (ROUTING === "hash" ? `${BASE}#/${view}` : BASE + view);

class Home extends LitElement {
  static properties = { shown: { state: true } };

  constructor() {
    super();
    this.shown = { tab: 1 };
  }

  show(change) {
    return () => {
      this.shown = { ...this.shown, ...change };
    };
  }

  render() {
    const { menu, choice, modal, tab, box, twice, entered, key } = this.shown;
    // What is on the pages does not depend on how they are routed: it is there, and clicked, in one of the two apps.
    if (ROUTING === "hash") return html`<main><h1>${find("home")}</h1></main>`;
    return html`<main>
      <h1>${find("home")}</h1>
      <section><button aria-haspopup="menu" @click=${this.show({ menu: !menu })}>${APP} menu</button>
        ${menu ? html`<ul role="menu"><li role="menuitem" @click=${this.show({ menu: false, choice: true })}>${APP} choice</li></ul>` : nothing}
        ${choice ? html`<p>${find("choice")}</p>` : nothing}</section>
      <section><button @click=${this.show({ modal: true })}>${APP} dialog</button>
        ${modal ? html`<div role="dialog" aria-modal="true"><p>${find("modal")}</p><button @click=${this.show({ modal: false })}>Done</button></div>` : nothing}</section>
      <section><div role="tablist"><button role="tab" @click=${this.show({ tab: 1 })}>${APP} first tab</button>
        <button role="tab" @click=${this.show({ tab: 2 })}>${APP} second tab</button></div>
        ${tab === 1 ? html`<p>One</p>` : html`<blockquote>${find("tab-2")}</blockquote>`}</section>
      <section><div @click=${this.show({ box: true })}>${APP} plain box</div>${box ? html`<p>${find("clicked")}</p>` : nothing}</section>
      <section><div @dblclick=${this.show({ twice: true })}>${APP} double box</div>${twice ? html`<p>${find("twice")}</p>` : nothing}</section>
      <section><div @mouseenter=${this.show({ entered: true })}>${APP} hover box</div>${entered ? html`<p>${find("entered")}</p>` : nothing}</section>
      <section><label>${APP} key field<input @keydown=${this.show({ key: true })} /></label>${key ? html`<p>${find("key")}</p>` : nothing}</section>
    </main>`;
  }
}
customElements.define("fixture-home", Home);

class App extends LitElement {
  static properties = { path: { state: true } };

  constructor() {
    super();
    this.path = here();
    for (const type of ["popstate", "hashchange"]) addEventListener(type, () => (this.path = here()));
  }

  go(event) {
    if (ROUTING === "hash") return;
    event.preventDefault();
    history.pushState({}, "", event.currentTarget.href);
    this.path = here();
  }

  link(view, text) {
    return html`<a href=${href(view)} @click=${this.go}>${APP} ${text}</a>`;
  }

  view() {
    if (this.path === "list") {
      return html`<main><h2>${find("list")}</h2><ul>${[1, 2].map((n) => html`<li>${this.link(`item/${n}`, `item ${n}`)}</li>`)}</ul></main>`;
    }
    if (this.path === "about") return html`<main><p>${find("about")}</p></main>`;
    if (this.path.startsWith("item/")) return html`<main><article>${find(this.path.replace("/", "-"))}</article></main>`;
    return html`<fixture-home></fixture-home>`;
  }

  render() {
    return html`<nav>${this.link("", "home")} ${this.link("list", "list")} ${this.link("about", "about")}</nav>${this.view()}`;
  }
}
customElements.define("fixture-app", App);
document.querySelector("#app").append(document.createElement("fixture-app"));
