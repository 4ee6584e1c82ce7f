// What happens without a new page: drawer, tabs, accordion, dialogs, switches, report views. One listener for all clicks.
"use strict";

const panelOf = (button) => document.getElementById(button.getAttribute("aria-controls"));

function selectTab(tab) {
  for (const other of tab.closest("[role=tablist]").querySelectorAll("[role=tab]")) {
    other.setAttribute("aria-selected", String(other === tab));
    panelOf(other).hidden = other !== tab;
  }
}

function openItem(button) {
  const opening = button.getAttribute("aria-expanded") !== "true";
  for (const other of button.closest(".accordion").querySelectorAll("[data-accordion]")) {
    const open = other === button && opening;
    other.setAttribute("aria-expanded", String(open));
    panelOf(other).hidden = !open;
  }
}

function flip(button) {
  const on = button.getAttribute("aria-checked") !== "true";
  button.setAttribute("aria-checked", String(on));
  document.getElementById(button.dataset.switch).hidden = !on;
}

async function post(button) {
  let answer;
  try {
    answer = await fetch(button.dataset.post, { method: "POST" });
  } catch {
    return; // not sent: nothing has changed, so nothing changes on the page
  }
  if (!answer.ok) return;
  if (button.dataset.then === "reload") return location.reload();
  for (const name of ["aria-pressed", "aria-checked"]) {
    if (button.hasAttribute(name)) button.setAttribute(name, String(button.getAttribute(name) !== "true"));
  }
}

function showReport() {
  const view = document.getElementById("view");
  const template = [...document.querySelectorAll("template[data-view]")].find((t) => t.dataset.view === location.pathname);
  view.replaceChildren(template.content.cloneNode(true));
  document.title = document.title.replace(/^.*? · /, `${template.dataset.title} report · `);
  for (const link of document.querySelectorAll(".subnav a")) {
    if (link.pathname === location.pathname) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

const actions = [
  ["[data-drawer]", () => document.body.classList.toggle("drawer-open")],
  ["[role=tab]", selectTab],
  ["[data-accordion]", openItem],
  ["[data-switch]", flip],
  ["[data-dialog]", (button) => document.getElementById(button.dataset.dialog).showModal()],
  ["[data-close-dialog]", (button) => button.closest("dialog").close()],
  ["[data-reveal]", (button) => { const it = document.getElementById(button.dataset.reveal); it.hidden = !it.hidden; }],
  ["[data-post]", post],
  ["[data-href]", (element) => location.assign(element.dataset.href)],
];

document.addEventListener("click", (event) => {
  const report = event.target.closest(".subnav a");
  if (report && !event.metaKey && !event.ctrlKey && !event.shiftKey) {
    event.preventDefault();
    if (report.pathname !== location.pathname) {
      history.pushState(null, "", report.pathname);
      showReport();
    }
    return;
  }
  for (const [selector, act] of actions) {
    const element = event.target.closest(selector);
    if (element) return act(element);
  }
});

// Browsers without WebMCP have no such object.
document.modelContext?.registerTool({
  name: "delivery_cost",
  description: "Tell what delivery of an order costs, in euros.",
  inputSchema: {
    type: "object",
    properties: { total: { type: "number", minimum: 0, description: "Sum of the order in euros" } },
    required: ["total"],
  },
  annotations: { readOnlyHint: true },
  execute: ({ total }) => ({ content: [{ type: "text", text: total < 80 ? "6 euros" : "free" }] }),
});

if (document.getElementById("view")) {
  showReport();
  addEventListener("popstate", showReport);
}
