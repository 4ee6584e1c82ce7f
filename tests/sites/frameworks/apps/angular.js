// What does an Angular app look like to an explorer? Standalone components compiled in the page, no zone.js, its router.
import "@angular/compiler";
import { Component, inject, provideZonelessChangeDetection, signal } from "@angular/core";
import { bootstrapApplication } from "@angular/platform-browser";
import { ActivatedRoute, RouterLink, RouterOutlet, provideRouter, withHashLocation } from "@angular/router";

class Common {
  app = APP;
  find = (name) => `found: ${APP}-${name}`;
}

const Home = Component({
  selector: "x-home",
  // What is on the pages does not depend on how they are routed: it is there, and clicked, in one of the two apps.
  template: ROUTING === "hash" ? `<main><h1>{{ find('home') }}</h1></main>` : `<main>
    <h1>{{ find('home') }}</h1>
    <section><button aria-haspopup="menu" (click)="menu.set(!menu())">{{ app }} menu</button>
      @if (menu()) { <ul role="menu"><li role="menuitem" (click)="menu.set(false); choice.set(true)">{{ app }} choice</li></ul> }
      @if (choice()) { <p>{{ find('choice') }}</p> }</section>
    <section><button (click)="modal.set(true)">{{ app }} dialog</button>
      @if (modal()) { <div role="dialog" aria-modal="true"><p>{{ find('modal') }}</p><button (click)="modal.set(false)">Done</button></div> }</section>
    <section><div role="tablist"><button role="tab" (click)="tab.set(1)">{{ app }} first tab</button>
      <button role="tab" (click)="tab.set(2)">{{ app }} second tab</button></div>
      @if (tab() === 1) { <p>One</p> } @else { <blockquote>{{ find('tab-2') }}</blockquote> }</section>
    <section><div (click)="box.set(true)">{{ app }} plain box</div>@if (box()) { <p>{{ find('clicked') }}</p> }</section>
    <section><div (dblclick)="twice.set(true)">{{ app }} double box</div>@if (twice()) { <p>{{ find('twice') }}</p> }</section>
    <section><div (mouseenter)="entered.set(true)">{{ app }} hover box</div>@if (entered()) { <p>{{ find('entered') }}</p> }</section>
    <section><label>{{ app }} key field<input (keydown)="key.set(true)"></label>@if (key()) { <p>{{ find('key') }}</p> }</section>
  </main>`,
})(
  class extends Common {
    menu = signal(false);
    choice = signal(false);
    modal = signal(false);
    tab = signal(1);
    box = signal(false);
    twice = signal(false);
    entered = signal(false);
    key = signal(false);
  },
);

const List = Component({
  selector: "x-list",
  imports: [RouterLink],
  template: `<main><h2>{{ find('list') }}</h2><ul>@for (n of [1, 2]; track n) {
    <li><a [routerLink]="'/item/' + n">{{ app }} item {{ n }}</a></li> }</ul></main>`,
})(class extends Common {});

const Item = Component({
  selector: "x-item",
  template: `<main><article>{{ find('item-' + id) }}</article></main>`,
})(
  class extends Common {
    id = inject(ActivatedRoute).snapshot.paramMap.get("id");
  },
);

const About = Component({ selector: "x-about", template: `<main><p>{{ find('about') }}</p></main>` })(class extends Common {});

const App = Component({
  selector: "#app",
  imports: [RouterLink, RouterOutlet],
  template: `<nav><a routerLink="/">{{ app }} home</a> <a routerLink="/list">{{ app }} list</a>
    <a routerLink="/about">{{ app }} about</a></nav><router-outlet />`,
})(class extends Common {});

const routes = [
  { path: "", component: Home },
  { path: "list", component: List },
  { path: "item/:id", component: Item },
  { path: "about", component: About },
];
const router = ROUTING === "hash" ? provideRouter(routes, withHashLocation()) : provideRouter(routes);
bootstrapApplication(App, { providers: [provideZonelessChangeDetection(), router] });
