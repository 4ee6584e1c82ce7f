"""A site whose pages show, for each kind of storage, whether the session in it is there; and one that signs out.

`KINDS` names the kinds. The page of every path has a line for each of them: "KIND: signed in as Ann", or "KIND: please
sign in". It asks for `/seen?KIND,KIND...` with the kinds that hold the session. One button signs in, in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.sites.server import Answer, Page
from waygraph.demo_site.local_server import Request

KINDS = (
    "cookie", "httponly", "partitioned", "local", "session", "objects", "typed", "origin",
)  # fmt: skip
#: Texts of the session that nothing that is stored may contain.
SECRETS = ("sid-77aa88bb", "tok-c0ffee42", "tab-0ddba115", "idb-5ca1ab1e", "byt-ba5eba11")
ACCOUNT = "ann.example"
#: Cookies by kind. The browser keeps secure ones of loopback addresses.
COOKIES = {
    "cookie": f"plain={SECRETS[0]}; Path=/",
    "httponly": f"strict={SECRETS[0]}; Path=/; HttpOnly; SameSite=Strict",
    "partitioned": f"__Host-part={SECRETS[0]}; Path=/; Secure; HttpOnly; SameSite=None; Partitioned",
}

#: `save` and `isThere` of the kinds that scripts keep. Databases are opened like those of applications: with the stores
#: that a first visit creates.
STORAGES = """
const done = (request) => new Promise((ok, no) => { request.onsuccess = () => ok(request.result); request.onerror = no; });
const database = (name, version, upgrade) => {
  const request = indexedDB.open(name, version);
  request.onupgradeneeded = () => upgrade(request.result);
  return done(request);
};
const users = () => database("users", 2, (db) => db.createObjectStore("accounts", { keyPath: "key" }));
const device = () => database("device", 7, (db) => {
  db.createObjectStore("keys");
  const log = db.createObjectStore("log", { autoIncrement: true });
  log.createIndex("names", "names", { multiEntry: true });
  log.createIndex("place", ["at.x", "at.y"], { unique: true });
  db.createObjectStore("empty", { keyPath: ["a", "b"] });
});
const within = async (opened, names, mode, use) => {
  const db = await opened;
  const stores = db.transaction(names, mode);
  const result = await use(...names.map((name) => stores.objectStore(name)));
  db.close();
  return result;
};
const kinds = {
  local: { save: () => localStorage.token = "tok-c0ffee42", isThere: () => localStorage.token === "tok-c0ffee42" },
  session: { save: () => sessionStorage.token = "tab-0ddba115", isThere: () => sessionStorage.token === "tab-0ddba115" },
  objects: {
    save: () => within(users(), ["accounts"], "readwrite", (accounts) =>
      done(accounts.put({ key: "now", user: { accessToken: "idb-5ca1ab1e", roles: ["a", "b"], age: null } }))),
    isThere: () => within(users(), ["accounts"], "readonly", async (accounts) =>
      (await done(accounts.get("now")))?.user.accessToken === "idb-5ca1ab1e"),
  },
  typed: {
    save: async () => {
      const key = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, true, ["sign", "verify"]);
      const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign"]);
      const signature = await crypto.subtle.sign("HMAC", key, new Uint8Array([1, 2, 3]));
      const part = { n: 1 };
      const self = { name: "self", at: new Date(86400000), never: new Date(NaN), big: 2n ** 70n, re: /a+/gi, no: undefined };
      self.parts = [part, part]; // one object, twice
      self.map = new Map([[part, new Set([1, "x"])], ["n", -0]]);
      self.error = new RangeError("far");
      self.boxed = [new String("s"), new Number(1), new Boolean(false)];
      await within(device(), ["keys", "log"], "readwrite", (keys, log) => Promise.all([
        keys.put({ key, pair, signature }, "hmac"),
        keys.put(self, new Date(5)),
        keys.put(new TextEncoder().encode("byt-ba5eba11"), ["bytes", 1]),
        keys.put({ view: new DataView(new Uint8Array([9, 8]).buffer, 1), floats: new Float64Array([0.5, NaN]), half: "\\ud800" }, "binary"),
        keys.put([new Blob(["hello"], { type: "text/x" }), new File(["file"], "a.txt", { lastModified: 5 })], new Uint8Array([7])),
        ...[1, 2, 3].map((i) => done(log.add({ names: ["n" + i, "all"], at: { x: i, y: i } }))),
      ].map((each) => each instanceof IDBRequest ? done(each) : each)).then(() => done(log.delete(3))));
    },
    isThere: () => within(device(), ["keys", "log", "empty"], "readwrite", async (keys, log, empty) => {
      const get = (key) => done(keys.get(key));
      const [held, self, bytes, binary, files] = await Promise.all(
        [get("hmac"), get(new Date(5)), get(["bytes", 1]), get("binary"), get(new Uint8Array([7]))]);
      if (!held) return false;
      const place = log.index("place");
      const found = await done(place.getKey([2, 2]));
      const all = await done(log.index("names").count("all"));
      const next = await done(log.add({}));
      await done(log.delete(next)); // the next visit finds a larger number
      const texts = [await files[0].text(), files[0].type, await files[1].text(), files[1].name, files[1].lastModified];
      const signed = await crypto.subtle.verify("HMAC", held.key, held.signature, new Uint8Array([1, 2, 3]));
      const [[one, set], [, zero]] = self.map;
      return signed && held.pair.privateKey.usages.includes("sign") && held.pair.publicKey.type === "public"
        && self.parts[0] === self.parts[1] && one === self.parts[0] && set.has("x") && Object.is(zero, -0) && self.at.getTime() === 86400000
        && Number.isNaN(self.never.getTime()) && self.big === 2n ** 70n && self.re.flags === "gi" && "no" in self
        && self.error instanceof RangeError && self.boxed[0] instanceof String && new TextDecoder().decode(bytes) === "byt-ba5eba11"
        && binary.view.getUint8(0) === 8 && binary.floats[1] !== binary.floats[1] && binary.half === "\\ud800"
        && texts.join() === "hello,text/x,file,a.txt,5" && found === 2 && all === 2 && next > 3
        && empty.keyPath.join() === "a,b" && place.unique;
    }),
  },
};
"""
_PAGE = """<!doctype html><title>%(title)s</title><h1>%(title)s</h1>
<nav><a href=/>Home</a> <a href=/orders>Orders</a> <a href=/invoices>Invoices</a></nav><main></main>
<iframe src="%(broker)s" hidden></iframe>
<script>%(storages)s
const broker = document.querySelector("iframe");
const loaded = new Promise((ok) => broker.addEventListener("load", ok));
const ask = async (what) => {
  await loaded;
  const answer = new Promise((ok) => addEventListener("message", ({ data }) => ok(data), { once: true }));
  broker.contentWindow.postMessage(what, "*");
  return answer;
};
kinds.origin = { save: () => ask("save"), isThere: () => ask("isThere") };
const fromCookies = %(cookies)s;
const draw = async () => {
  const there = [...fromCookies];
  for (const [kind, { isThere }] of Object.entries(kinds)) if (await isThere()) there.push(kind);
  const lines = %(kinds)s.map((kind) => `<p>${kind}: ${there.includes(kind) ? "signed in as Ann" : "please sign in"}</p>`);
  const hello = there.length ? "<p>Hello ann.example</p>" : "<form><input name=user><input type=password></form><button>Enter</button>";
  document.querySelector("main").innerHTML = lines.join("") + hello;
  if (there.length) new Image().src = "/seen?" + there;
  document.querySelector("button")?.addEventListener("click", async () => {
    for (const { save } of Object.values(kinds)) await save();
    location = "/enter";
  });
};
draw();
</script>"""
_BROKER = """<!doctype html><script>
const open = new Promise((ok) => {
  const request = indexedDB.open("", 1); // the empty name is a name
  request.onupgradeneeded = () => request.result.createObjectStore("sessions");
  request.onsuccess = () => ok(request.result);
});
addEventListener("message", async ({ data, source }) => {
  const db = await open;
  const store = db.transaction("sessions", "readwrite").objectStore("sessions");
  if (data === "save") { localStorage.who = "tok-c0ffee42"; store.put("idb-5ca1ab1e", "token"); }
  const request = store.get("token");
  request.onsuccess = () => source.postMessage(request.result === "idb-5ca1ab1e" && localStorage.who === "tok-c0ffee42", "*");
});
</script>"""


def broker_pages() -> dict[str, Answer]:
    """The second origin, which keeps a session for the site in a frame."""
    return {"/": _BROKER}


def session_pages(broker: str) -> dict[str, Answer]:
    """The site; `broker` is the URL of the second origin."""

    def page(title: str) -> Answer:
        def answer(request: Request) -> str:
            sent = request.headers.get("Cookie", "")
            cookies = [kind for kind, cookie in COOKIES.items() if cookie.partition(";")[0] in sent]
            values = {"title": title, "broker": broker, "storages": STORAGES}
            return _PAGE % {**values, "cookies": cookies, "kinds": list(KINDS)}

        return answer

    def enter(kinds: Mapping[str, str]) -> Answer:
        names = list(kinds)

        def answer(request: Request) -> Page:
            # One cookie an answer: a header has one value here.
            step = int(request.target.partition("?")[2] or 0)
            target = f"/enter?{step + 1}" if step + 1 < len(names) else "/"
            return Page(redirect=target, headers={"Set-Cookie": kinds[names[step]]})

        return answer

    return {
        "/": page("Home"),
        "/orders": page("Orders"),
        "/invoices": page("Invoices"),
        "/enter": enter(COOKIES),
        "/seen": "",
    }


#: Buttons that end the session without a word: one in the database, one in the storage of the tab.
_LEAVING = """<!doctype html><title>%(title)s</title><h1>%(title)s</h1><p>loading</p>
<button>Wide</button> <button>Small</button> <a href=/>Home</a> <a href=/a>A</a> <a href=/b>B</a> <button>More</button>
<script>
const open = new Promise((ok) => {
  const request = indexedDB.open("users", 1);
  request.onupgradeneeded = () => request.result.createObjectStore("now");
  request.onsuccess = () => ok(request.result);
});
const run = async (mode, use) => {
  const request = use((await open).transaction("now", mode).objectStore("now"));
  return new Promise((ok) => request.onsuccess = () => ok(request.result));
};
const draw = async () => {
  const user = await run("readonly", (store) => store.get("user")), tab = sessionStorage.user;
  document.querySelector("p").textContent = user && tab ? "Signed in as " + user : "Nobody";
};
const visits = () => run("readwrite", (store) => store.put(Math.random(), "visits"));
visits().then(draw);
const heading = document.querySelector("h1"), [wide, small, more] = document.querySelectorAll("button");
wide.addEventListener("click", () => run("readwrite", (store) => store.put("", "user")).then(() => heading.title = "wide"));
small.addEventListener("click", () => { sessionStorage.user = ""; heading.title = "small"; });
more.addEventListener("click", () => heading.insertAdjacentHTML("afterend", "<h2>More</h2>"));
</script>"""


def leaving_pages() -> dict[str, Answer]:
    """Pages with buttons that sign out in the browser only."""
    return {path: _LEAVING % {"title": f"Page {path}"} for path in ("/", "/a", "/b")}
