"""Forms: search forms are submitted once, others are not, and controls with event handlers are used."""

from tests.sites.answers import Area, blocked, found, never, page, shows, skipped, states

SEARCH = Area(
    "search-form",
    {
        "/search": page(
            "<form action=/search/results role=search><input name=q aria-label=Words><button>Find it</button></form>"
        ),
        "/search/results": found("search-results"),
    },
    (
        shows("search-results", by="Words"),
        skipped("form_get", by="Find it"),
        never("/search/results"),
        never("/search/results?q="),
        states("/search", 1),
    ),
)

POST = Area(
    "post-form",
    {
        "/post": page(
            """<form method=post action=/post/sent><input name=m aria-label=Message><button>Go ahead</button>
            <input type=submit value="Go on"><button type=button onclick="this.form.submit()">By script</button></form>"""
        ),
    },
    (
        blocked("POST", "/post/sent", by="Go ahead"),
        blocked("POST", "/post/sent", by="Go on"),
        never("/post/sent"),
        states("/post", 1),
    ),
)

CONTROLS = Area(
    "controls",
    {
        "/controls": page(
            """<label><input type=checkbox id=c>Show the extras</label>
            <fieldset><label><input type=radio name=r value=a checked>Plan A</label><label><input type=radio name=r value=b id=b>Plan B</label></fieldset>
            <button role=switch aria-checked=false id=s>Dark</button>
            <script>
            c.addEventListener('change', () => c.checked ? say('box-checked') : document.querySelector('f-box-checked').remove());
            b.addEventListener('change', () => say('radio-chosen'));
            s.addEventListener('click', () => say('switched'));</script>"""
        )
    },
    (
        shows("box-checked", by="Show the extras"),
        shows("radio-chosen", by="Plan B"),
        shows("switched", by="Dark"),
    ),
)

SELECT = Area(
    "select-navigates",
    {
        "/select": page(
            """<label>Go to <select id=s><option value="">choose<option value=/select/one>One<option value=/select/two>Two</select></label>
            <script>s.addEventListener('change', () => { if (s.value) location = s.value; });</script>"""
        ),
        "/select/one": found("select-one"),
        "/select/two": found("select-two"),
    },
    (shows("select-one"), shows("select-two"), states("/select", 1)),
)

AREAS = (SEARCH, POST, CONTROLS, SELECT)
