// What does a Vue app look like to an explorer? Templates compiled in the page, listeners on the elements themselves.
const find = (name) => `found: ${APP}-${name}`;
const common = { methods: { find }, data: () => ({ app: APP }) };

const Home = {
  mixins: [common],
  data: () => ({ menu: false, choice: false, modal: false, tab: 1, box: false, twice: false, entered: false, key: false }),
  // What is on the pages does not depend on how they are routed: it is there, and clicked, in one of the two apps.
  template: ROUTING === "hash" ? `<main><h1>{{ find('home') }}</h1></main>` : `<main>
    <h1>{{ find('home') }}</h1>
    <section><button aria-haspopup="menu" @click="menu = !menu">{{ app }} menu</button>
      <ul v-if="menu" role="menu"><li role="menuitem" @click="menu = false; choice = true">{{ app }} choice</li></ul>
      <p v-if="choice">{{ find('choice') }}</p></section>
    <section><button @click="modal = true">{{ app }} dialog</button>
      <div v-if="modal" role="dialog" aria-modal="true"><p>{{ find('modal') }}</p><button @click="modal = false">Done</button></div></section>
    <section><div role="tablist"><button role="tab" :aria-selected="tab === 1" @click="tab = 1">{{ app }} first tab</button>
      <button role="tab" :aria-selected="tab === 2" @click="tab = 2">{{ app }} second tab</button></div>
      <p v-if="tab === 1">One</p><blockquote v-else>{{ find('tab-2') }}</blockquote></section>
    <section><div @click="box = true">{{ app }} plain box</div><p v-if="box">{{ find('clicked') }}</p></section>
    <section><div @dblclick="twice = true">{{ app }} double box</div><p v-if="twice">{{ find('twice') }}</p></section>
    <section><div @mouseenter="entered = true">{{ app }} hover box</div><p v-if="entered">{{ find('entered') }}</p></section>
    <section><label>{{ app }} key field<input @keydown="key = true"></label><p v-if="key">{{ find('key') }}</p></section>
  </main>`,
};
const List = {
  mixins: [common],
  template: `<main><h2>{{ find('list') }}</h2><ul><li v-for="n in 2"><router-link :to="'/item/' + n">{{ app }} item {{ n }}</router-link></li></ul></main>`,
};
const Item = { mixins: [common], template: `<main><article>{{ find('item-' + $route.params.id) }}</article></main>` };
const About = { mixins: [common], template: `<main><p>{{ find('about') }}</p></main>` };

const { createRouter, createWebHashHistory, createWebHistory } = VueRouter;
const router = createRouter({
  history: ROUTING === "hash" ? createWebHashHistory(BASE) : createWebHistory(BASE),
  routes: [
    { path: "/", component: Home },
    { path: "/list", component: List },
    { path: "/item/:id", component: Item },
    { path: "/about", component: About },
  ],
});
Vue.createApp({
  mixins: [common],
  template: `<nav><router-link to="/">{{ app }} home</router-link> <router-link to="/list">{{ app }} list</router-link>
    <router-link to="/about">{{ app }} about</router-link></nav><router-view></router-view>`,
})
  .use(router)
  .mount("#app");
