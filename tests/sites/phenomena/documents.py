"""Pages of several documents: frames, shadow roots, new tabs, dialogs, downloads."""

from tests.sites.answers import Area, dialog, edge, fetched, found, hidden, never, page, shows, skipped, states
from tests.sites.server import Page

FRAMES = Area(
    "frames",
    {
        "/frames": page("<iframe src=/frames/inner width=400 height=160></iframe>"),
        "/frames/inner": page("<button onclick=\"say('frame-button')\">In the frame</button>"),
    },
    (shows("frame-button", by="In the frame"), states("/frames", 2)),
)

FRAME_LINKS = Area(
    "frame-links",
    {
        "/frame-links": page("<iframe src=/frame-links/inner width=400 height=160></iframe>"),
        "/frame-links/inner": "<a href=/frame-links/next>Inner next</a> <a href=/frame-links/top target=_top>To the top</a>",
        "/frame-links/next": found("frame-navigated"),
        "/frame-links/top": found("frame-top"),
    },
    # A link inside changes the frame alone: another state of the outer page's URL.
    (shows("frame-navigated", by="Inner next"), shows("frame-top", by="To the top"), states("/frame-links", 2)),
)

NESTED_FRAMES = Area(
    "nested-frames",
    {
        "/nested": page("<iframe src=/nested/1 width=500 height=260></iframe>"),
        "/nested/1": "<p>One</p><iframe src=/nested/2 width=400 height=160></iframe>",
        "/nested/2": page("<button onclick=\"say('nested-frame')\">Two deep</button>"),
    },
    (shows("nested-frame", by="Two deep"), states("/nested", 2)),
)

#: With the other host in scope, its frame can be used like the rest of the page.
FOREIGN_FRAME_IN_SCOPE = (
    shows("foreign-frame", by="Embedded button"),
    shows("foreign-next", by="Embedded link"),
    states("/foreign-frame", 2),
)

FOREIGN_FRAME = Area(
    "foreign-frame",
    {"/foreign-frame": page("<h2>Ours</h2><iframe src=OTHER/embedded width=400 height=160></iframe>")},
    # What other sites show inside of ours (advertisements, players, maps) is theirs: it is loaded, and not acted on.
    (hidden("foreign-frame"), never("/embedded/next"), states("/foreign-frame", 1)),
    other={
        "/embedded": page(
            "<button onclick=\"say('foreign-frame')\">Embedded button</button> <a href=/embedded/next target=_top>Embedded link</a>"
        ),
        "/embedded/next": found("foreign-next"),
    },
)

OPEN_SHADOW = Area(
    "open-shadow",
    {
        "/open-shadow": page(
            """<x-menu><a slot=item href=/open-shadow/slotted>Slotted link</a></x-menu><script>
            customElements.define('x-menu', class extends HTMLElement {
              connectedCallback() {
                const root = this.attachShadow({ mode: 'open' });
                root.innerHTML = '<button>Shadow button</button><slot name=item></slot><x-inner></x-inner>';
                root.querySelector('button').onclick = () => say('open-shadow', root);
              }
            });
            customElements.define('x-inner', class extends HTMLElement {
              connectedCallback() {
                const root = this.attachShadow({ mode: 'open' });
                root.innerHTML = '<a href=/open-shadow/inner>Link two roots deep</a>';
              }
            });</script>"""
        ),
        "/open-shadow/slotted": found("slotted"),
        "/open-shadow/inner": found("inner-root"),
    },
    (
        shows("open-shadow", by="Shadow button"),
        shows("slotted", by="Slotted link"),
        shows("inner-root", by="Link two roots deep"),
        states("/open-shadow", 2),
    ),
)

CLOSED_SHADOW = Area(
    "closed-shadow",
    {
        "/closed-shadow": page(
            """<x-closed></x-closed><script>
            customElements.define('x-closed', class extends HTMLElement {
              connectedCallback() {
                const root = this.attachShadow({ mode: 'closed' });
                root.innerHTML = '<button>Closed button</button> <a href=/closed-shadow/next>Closed link</a>';
                root.querySelector('button').onclick = () => say('closed-shadow', root);
              }
            });</script>"""
        ),
        "/closed-shadow/next": found("closed-next"),
    },
    (
        shows("closed-shadow", by="Closed button"),
        shows("closed-next", by="Closed link"),
        states("/closed-shadow", 2),
    ),
)

DECLARED_SHADOW = Area(
    "declared-shadow",
    {
        "/declared-shadow": """<!doctype html><title>Declared</title><div><template shadowrootmode=open>
            <a href=/declared-shadow/open>Declared open</a></template></div><div><template shadowrootmode=closed>
            <a href=/declared-shadow/closed>Declared closed</a></template></div>""",
        "/declared-shadow/open": found("declared-open"),
        "/declared-shadow/closed": found("declared-closed"),
    },
    (shows("declared-open", by="Declared open"), shows("declared-closed", by="Declared closed")),
)

NEW_TABS = Area(
    "new-tabs",
    {
        "/new-tabs": page(
            """<a href=/new-tabs/blank target=_blank>Blank target</a>
            <button onclick="window.open('/new-tabs/window')">Opens a window</button>
            <a href=OTHER/tab target=_blank>Foreign tab</a>
            <button onclick="window.open('OTHER/window')">Foreign window</button>"""
        ),
        "/new-tabs/blank": found("blank-target"),
        "/new-tabs/window": found("opened-window"),
    },
    (
        shows("blank-target", by="Blank target"),
        shows("opened-window", by="Opens a window"),
        skipped("external", by="Foreign tab"),
        skipped("external", by="Foreign window"),
        never("/tab"),
        never("/window"),
    ),
    other={"/tab": found("foreign-tab"), "/window": found("foreign-window")},
)

DIALOGS = Area(
    "dialogs",
    {
        "/dialogs": page(
            """<button onclick="alert('Hello'); say('after-alert')">Alerts</button>
            <button onclick="say(confirm('Really?') ? 'confirmed' : 'dismissed')">Asks</button>
            <button onclick="say(prompt('Your name?') === null ? 'no-answer' : 'answered')">Prompts</button>
            <a href=/dialogs/leaving>To the page that holds on</a>"""
        ),
        "/dialogs/leaving": page(
            """<button onclick="addEventListener('beforeunload', e => e.preventDefault()); say('holds-on')">Hold on</button>
            <a href=/dialogs/left>Leave</a>"""
        ),
        "/dialogs/left": found("left"),
    },
    (
        dialog("alert: Hello", by="Alerts"),
        shows("after-alert", by="Alerts"),
        dialog("confirm: Really?", by="Asks"),
        shows("dismissed", by="Asks"),
        hidden("confirmed"),
        dialog("prompt: Your name?", by="Prompts"),
        shows("no-answer", by="Prompts"),
        shows("holds-on", by="Hold on"),
        shows("left", by="Leave"),
        states("/dialogs", 4),
    ),
)

DOWNLOADS = Area(
    "downloads",
    {
        "/downloads": page(
            """<a href=/downloads/list.csv download>Marked as a download</a>
            <a href=/downloads/archive>Sent as an attachment</a>
            <button onclick="location = '/downloads/later'">Made by a script</button>"""
        ),
        "/downloads/list.csv": Page("a,b\n", content_type="text/csv"),
        "/downloads/archive": Page(
            "PK", content_type="application/zip", headers={"Content-Disposition": "attachment; filename=a.zip"}
        ),
        "/downloads/later": Page("<p>x", headers={"Content-Disposition": "attachment; filename=page.html"}),
    },
    (
        skipped("download", by="Marked as a download"),
        skipped("download", by="Sent as an attachment"),
        skipped("download", by="Made by a script"),
        never("/downloads/list.csv"),
        states("/downloads", 1),
    ),
)

OBJECTS = Area(
    "objects",
    {
        "/objects": page(
            """<object data=/objects/object type=text/html width=300 height=80></object>
            <embed src=/objects/embed type=text/html width=300 height=80>"""
        ),
        "/objects/object": "<a href=/objects/next target=_top>Link in an object</a>",
        "/objects/embed": "<a href=/objects/other target=_top>Link in an embed</a>",
        "/objects/next": found("object-link"),
        "/objects/other": found("embed-link"),
    },
    (
        fetched("/objects/object"),
        fetched("/objects/embed"),
        shows("object-link", by="Link in an object"),
        shows("embed-link", by="Link in an embed"),
    ),
)

FRAMESET = Area(
    "frameset",
    {
        "/frameset": "<!doctype html><title>Set</title><frameset cols='50%,50%'><frame src=/frameset/a><frame src=/frameset/b></frameset>",
        "/frameset/a": "<a href=/frameset/next target=_top>Link in a frameset</a>",
        "/frameset/b": page("<button onclick=\"say('frameset-button')\">Button in a frameset</button>"),
        "/frameset/next": found("frameset-link"),
    },
    (shows("frameset-link", by="Link in a frameset"), shows("frameset-button", by="Button in a frameset")),
)

EDGE_ONLY = Area(
    "no-effect",
    {"/no-effect": page("<button>Does nothing</button>")},
    (edge("Does nothing"), states("/no-effect", 1)),
)

ADDRESSED_TABS = Area(
    "addressed-tabs",
    {
        "/addressed": page(
            """<button onclick="const w = window.open(''); w.document.write('<p>Wait</p>'); w.location = '/addressed/set'">Sets a location</button>
            <button onclick="const w = window.open('about:blank'); fetch('/addressed/where').then(r => r.text()).then(t => w.location.replace(t))">Asks first</button>
            <button onclick="const w = window.open(); w.document.body.textContent = 'Wait'; w.location.href = 'addressed/href'; w.focus()">Sets an address</button>
            <button onclick="const a = document.createElement('a'); a.href = '/addressed/link'; a.target = '_blank'; a.click()">Makes a link</button>
            <button onclick="const a = document.createElement('a'); a.href = '/addressed/event'; a.target = '_blank'; a.dispatchEvent(new MouseEvent('click'))">Sends a click</button>
            <button onclick="const f = document.createElement('form'); f.action = '/addressed/form'; f.target = '_blank';
              f.innerHTML = '<input name=part value=2>'; document.body.append(f); f.submit(); f.remove()">Makes a form</button>
            <button onclick="const w = window.open('', 'paper'); const f = document.createElement('form'); f.action = '/addressed/named'; f.target = 'paper';
              document.body.append(f); f.submit(); f.remove()">Names a window</button>"""
        ),
        "/addressed/where": Page("/addressed/replaced", content_type="text/plain"),
        **{
            f"/addressed/{name}": found(f"tab-{name}") for name in ("set", "replaced", "href", "link", "event", "named")
        },
        "/addressed/form?part=2": found("tab-form"),
    },
    (
        shows("tab-set", by="Sets a location"),
        shows("tab-replaced", by="Asks first"),
        shows("tab-href", by="Sets an address"),
        shows("tab-link", by="Makes a link"),
        shows("tab-event", by="Sends a click"),
        shows("tab-form", by="Makes a form"),
        shows("tab-named", by="Names a window"),
        states("/addressed", 1),
    ),
)

REMOVED_INTERFACES = Area(
    "removed-interfaces",
    {
        "/removed": page(
            """<a href=/removed/ready>Service worker</a> <a href=/removed/registered>Registration</a>
            <a href=/removed/shared>Shared worker</a> <a href=/removed/peer>Peer connection</a>"""
        ),
        "/removed/ready": page(
            """<h1>Application</h1><script>navigator.serviceWorker.register('/sw.js');
            navigator.serviceWorker.ready.then((r) => { r.active.postMessage('go'); say('worker-ready'); });</script>"""
        ),
        "/removed/registered": page(
            """<h1>Application</h1><script>(async () => {
              const registration = await navigator.serviceWorker.register('/sw.js', { scope: '/removed/' });
              registration.addEventListener('updatefound', () => {});
              if ((registration.active || registration.installing).state && await registration.pushManager.getSubscription() === null
                  && registration.scope.endsWith('/removed/')) say('worker-registered');
            })();</script>"""
        ),
        "/removed/shared": page(
            """<h1>Application</h1><script>const worker = new SharedWorker('/shared.js');
            worker.port.onmessage = () => say('never'); worker.port.start(); worker.port.postMessage('hello'); say('shared-made');</script>"""
        ),
        "/removed/peer": page(
            """<h1>Application</h1><script>(async () => {
              const peer = new RTCPeerConnection({ iceServers: [] });
              const channel = peer.createDataChannel('all'); channel.onopen = () => say('never');
              await peer.setLocalDescription(await peer.createOffer());
              if (peer.connectionState === 'new') say('peer-made');
            })();</script>"""
        ),
    },
    (
        shows("worker-ready", by="Service worker"),
        shows("worker-registered", by="Registration"),
        shows("shared-made", by="Shared worker"),
        shows("peer-made", by="Peer connection"),
        never("/sw.js"),
        never("/shared.js"),
        hidden("never"),
    ),
)

AREAS = (
    ADDRESSED_TABS,
    REMOVED_INTERFACES,
    FRAMES,
    FRAME_LINKS,
    NESTED_FRAMES,
    FOREIGN_FRAME,
    OPEN_SHADOW,
    CLOSED_SHADOW,
    DECLARED_SHADOW,
    NEW_TABS,
    DIALOGS,
    DOWNLOADS,
    OBJECTS,
    FRAMESET,
    EDGE_ONLY,
)
