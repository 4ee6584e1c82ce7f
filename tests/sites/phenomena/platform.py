"""Widgets of HTML and CSS without scripts: interest invokers, commands, popovers, dialogs, carousels, skipped content."""

from tests.sites.answers import Area, edge, found, hidden, page, shows, states

INTEREST = Area(
    "interest",
    {
        "/interest": """<!doctype html><title>Interest</title><style>
        #quick { interest-delay: 0s } #slow { interest-delay: 0.8s 0.1s } #no { interest-delay-start: 60s }
        #panel { display: none } #panel:interest-target { display: block }</style>
        <button interestfor=hint>Point at a button</button><a id=slow href=/interest/page interestfor=auto>Point at a link</a>
        <button id=quick interestfor=panel>Point at once</button><button id=no interestfor=late>Nobody waits</button>
        <x-tip><template shadowrootmode=open><button interestfor=inner>Point in a root</button>
        <div id=inner popover=hint><a href=/interest/root>Link in a root</a></div></template></x-tip>
        <div id=hint popover=hint><a href=/interest/hint>Link in a hint</a></div>
        <div id=auto popover><a href=/interest/auto>Link in a popover</a></div>
        <div id=panel><a href=/interest/panel>Link in a panel</a></div><div id=late popover=hint>found: too-late</div>""",
        "/interest/page": found("interest-page"),
        "/interest/hint": found("interest-hint"),
        "/interest/auto": found("interest-auto"),
        "/interest/panel": found("interest-panel"),
        "/interest/root": found("interest-root"),
    },
    (
        shows("interest-page", by="Point at a link"),
        shows("interest-hint", by="Link in a hint"),
        shows("interest-auto", by="Link in a popover"),
        shows("interest-panel", by="Link in a panel"),
        shows("interest-root", by="Link in a root"),
        states("/interest", 5),
    ),
)

COMMANDS = Area(
    "commands",
    {
        "/commands": page(
            """<button commandfor=d command=show-modal>Command a modal</button>
            <button commandfor=p command=toggle-popover>Command a popover</button>
            <button commandfor=m command=show-popover>Command a manual popover</button>
            <button commandfor=c command=--fill>Command of its own</button>
            <dialog id=d><a href=/commands/modal>Link in the commanded modal</a><button commandfor=d command=close>Leave</button>
            <button commandfor=d command=request-close>Ask to leave</button></dialog>
            <div id=p popover><a href=/commands/popover>Link in the commanded popover</a></div>
            <div id=m popover=manual><a href=/commands/manual>Link in the manual popover</a></div><div id=c></div><script>
            c.addEventListener('command', event => { if (event.command === '--fill') say('own-command', c); });</script>"""
        ),
        "/commands/modal": found("commanded-modal"),
        "/commands/popover": found("commanded-popover"),
        "/commands/manual": found("commanded-manual"),
    },
    (
        shows("commanded-modal", by="Link in the commanded modal"),
        shows("commanded-popover", by="Link in the commanded popover"),
        shows("commanded-manual", by="Link in the manual popover"),
        shows("own-command", by="Command of its own"),
        edge("Leave"),
        edge("Ask to leave"),
        states("/commands", 5),
    ),
)

CLOSED_BY = Area(
    "closed-by",
    {
        "/closed-by": page(
            """<button commandfor=a command=show-modal>Open what any click closes</button>
            <button commandfor=n command=show-modal>Open what stays</button>
            <dialog id=a closedby=any><a href=/closed-by/any>Link in what any click closes</a></dialog>
            <dialog id=n closedby=none><a href=/closed-by/none>Link in what stays</a></dialog>"""
        ),
        "/closed-by/any": found("closed-by-any"),
        "/closed-by/none": found("closed-by-none"),
    },
    (
        shows("closed-by-any", by="Link in what any click closes"),
        shows("closed-by-none", by="Link in what stays"),
        states("/closed-by", 3),
    ),
)

EXCLUSIVE_DETAILS = Area(
    "exclusive-details",
    {
        "/exclusive-details": page(
            """<details name=one><summary>First of one</summary><f-first style="display:block">found: first-of-one</f-first></details>
            <details name=one><summary>Second of one</summary><f-second style="display:block">found: second-of-one</f-second>
            <a href=/exclusive-details/in>Link in the second</a></details>"""
        ),
        "/exclusive-details/in": found("in-exclusive-details"),
    },
    (
        shows("first-of-one", by="First of one"),
        shows("second-of-one", by="Second of one"),
        shows("in-exclusive-details", by="Link in the second"),
        states("/exclusive-details", 3),
    ),
)

LATE_TIPS = Area(
    "late-tips",
    {
        "/late-tips": page(
            """<style>.tip { opacity: 0; visibility: hidden; transition: opacity .1s .6s, visibility 0s .6s }
            #styled:hover + .tip { opacity: 1; visibility: visible }</style>
            <button id=styled>Tip by style</button><div class=tip>found: styled-tip</div><hr>
            <button id=timed>Tip by timer</button><script>
            let timer;
            timed.onmouseenter = () => { timer = setTimeout(() => say('timed-tip'), 600); };
            timed.onmouseleave = () => { clearTimeout(timer); document.querySelector('f-timed-tip')?.remove(); };
            </script><hr><button id=worked>Tip after work</button><script>
            worked.onpointerover = () => { for (const end = Date.now() + 1600; Date.now() < end;); };
            worked.onmouseenter = () => { timer = setTimeout(() => say('worked-tip'), 600); };
            worked.onmouseleave = () => { clearTimeout(timer); document.querySelector('f-worked-tip')?.remove(); };
            </script>"""
        ),
    },
    (
        shows("styled-tip", by="Tip by style"),
        shows("timed-tip", by="Tip by timer"),
        shows("worked-tip", by="Tip after work"),
        states("/late-tips", 4),
    ),
)

#: No person sees these texts at once, and the browser's search finds them.
UNTIL_FOUND = Area(
    "until-found",
    {
        "/until-found": page(
            """<h2>Questions</h2><div hidden=until-found id=f><p>found: only-by-search</p><p>Second paragraph</p></div>
            <details><summary>How long?</summary><p>found: in-closed-details</p><a href=/until-found/in>Link in it</a></details>"""
        ),
        "/until-found/in": found("behind-details"),
    },
    (
        shows("only-by-search"),
        shows("in-closed-details", by="How long?"),
        shows("behind-details", by="Link in it"),
        states("/until-found", 2),
    ),
)

#: The browser skips what is far from the window. Sections without `contain-intrinsic-size` have no height until then, so
#: that the last ones lie below the end of the page.
SKIPPED = Area(
    "skipped",
    {
        "/skipped": page(
            """<style>section { content-visibility: auto } .sized { contain-intrinsic-size: auto 20px }
            .away { position: absolute; left: -5000px }</style><div style="height:3000px">Top</div>
            <section><div style="height:900px">Space</div><button onclick="say('by-skipped-button')">Skipped button</button></section>
            <section class=sized><div style="height:900px">Space</div><a href=/skipped/sized>Link below its box</a></section>
            <section>found: skipped-text-alone</section>
            <section><div style="height:900px">Space</div><f-far style="display:block">found: far-section</f-far>
            <div style="overflow:hidden;height:40px"><a href=/skipped/far>Link in the last section</a></div>
            <a class=away href=/skipped/away>Link off the page</a></section>"""
        ),
        "/skipped/sized": found("skipped-sized"),
        "/skipped/far": found("skipped-far"),
        "/skipped/away": found("skipped-away"),
    },
    (
        shows("by-skipped-button", by="Skipped button"),
        shows("skipped-sized", by="Link below its box"),
        shows("skipped-text-alone"),
        shows("far-section"),
        shows("skipped-far", by="Link in the last section"),
        hidden("skipped-away"),
        states("/skipped", 2),
    ),
)

_TRACK = """.track { display: flex; overflow-x: auto; width: 300px; margin: 60px; scroll-snap-type: x mandatory }
.track > div { flex: 0 0 300px; height: 80px; scroll-snap-align: start; container-type: scroll-state }
.track a { visibility: hidden }
@container scroll-state(snapped: x) { .track a { visibility: visible } }"""

#: The controls are drawn by the browser and are in no document. A slide can be used while it is in the middle.
SCROLL_BUTTONS = Area(
    "scroll-buttons",
    {
        "/scroll-buttons": page(
            f"""<style>{_TRACK} .track::scroll-button(left) {{ content: "<" / "Back a slide" }}
            .track::scroll-button(right) {{ content: ">" / "On a slide" }}</style><div class=track>
            <div><a href=/scroll-buttons/1>First slide</a></div><div><a href=/scroll-buttons/2>Second slide</a></div>
            <div><a href=/scroll-buttons/3>Third slide</a></div></div>"""
        ),
        "/scroll-buttons/1": found("button-slide-1"),
        "/scroll-buttons/2": found("button-slide-2"),
        "/scroll-buttons/3": found("button-slide-3"),
    },
    (
        shows("button-slide-1", by="First slide"),
        shows("button-slide-2", by="Second slide"),
        shows("button-slide-3", by="Third slide"),
        edge("On a slide"),
        edge("Back a slide"),
        states("/scroll-buttons", 3),
    ),
)

SCROLL_MARKERS = Area(
    "scroll-markers",
    {
        "/scroll-markers": page(
            f"""<style>{_TRACK} .track {{ scroll-marker-group: after tabs }}
            .track > div::scroll-marker {{ content: "Tab of " attr(data-of) }}</style><div class=track>
            <div data-of=apples><a href=/scroll-markers/1>Apples</a></div><div data-of=pears><a href=/scroll-markers/2>Pears</a></div>
            <div data-of=plums><a href=/scroll-markers/3>Plums</a></div></div>"""
        ),
        "/scroll-markers/1": found("marker-1"),
        "/scroll-markers/2": found("marker-2"),
        "/scroll-markers/3": found("marker-3"),
    },
    (
        shows("marker-1", by="Apples"),
        shows("marker-2", by="Pears"),
        shows("marker-3", by="Plums"),
        edge("Tab of pears"),
        edge("Tab of plums"),
        edge("Tab of apples"),
        states("/scroll-markers", 3),
    ),
)

AREAS = (
    INTEREST, COMMANDS, CLOSED_BY, EXCLUSIVE_DETAILS, LATE_TIPS, UNTIL_FOUND, SKIPPED, SCROLL_BUTTONS, SCROLL_MARKERS,
)  # fmt: skip
