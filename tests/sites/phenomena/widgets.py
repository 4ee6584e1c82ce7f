"""Widgets that show one part of a page at a time: menus, tabs, accordions, carousels, comboboxes, modals."""

from tests.sites.answers import Area, found, hidden, page, shows, states

HOVER_MENUS = Area(
    "hover-menus",
    {
        "/hover-css": page(
            """<style>.sub { display: none } .menu:hover .sub { display: block } .menu { width: 200px }</style>
            <div class=menu><span>Hover by style</span><div class=sub><a href=/hover-css/item>Styled item</a></div></div>
            <hr><div id=m style="width:200px"><span>Hover by listener</span></div><a href=/hover-css/mega>Mega menu</a><script>
            m.addEventListener('mouseenter', () => {
              if (!m.querySelector('a')) m.insertAdjacentHTML('beforeend', '<f-hovered style="display:block"><a href=/hover-css/heard>Heard item</a></f-hovered>');
            });
            m.addEventListener('mouseleave', () => m.querySelector('f-hovered')?.remove());</script>"""
        ),
        "/hover-css/item": found("hover-style-item"),
        "/hover-css/heard": found("hover-listener-item"),
        "/hover-css/mega": page(
            """<style>li { display: inline-block; padding: 4px } li ul { visibility: hidden; position: absolute }
            li:hover > ul, li:focus-within > ul { visibility: visible }</style><nav><ul>
            <li><a href=/hover-css/top>Products</a><ul><li><a href=/hover-css/deep>Deep item</a></ul>
            </ul></nav>"""
        ),
        "/hover-css/top": found("hover-top"),
        "/hover-css/deep": found("hover-deep"),
    },
    (
        shows("hover-style-item", by="Styled item"),
        shows("hover-listener-item", by="Heard item"),
        shows("hover-top", by="Products"),
        shows("hover-deep", by="Deep item"),
        states("/hover-css", 3),
        states("/hover-css/mega", 2),
    ),
)

DETAILS = Area(
    "details",
    {
        "/details": """<!doctype html><title>Details</title><details><summary>More about it</summary>
        <a href=/details/inside>Inside the details</a></details>
        <details open><summary>Open already</summary><a href=/details/open>Inside the open one</a></details>""",
        "/details/inside": found("details-inside"),
        "/details/open": found("details-open"),
    },
    (
        shows("details-inside", by="Inside the details"),
        shows("details-open", by="Inside the open one"),
        # As it is, first toggled, second toggled. What the parent has too is not acted on again: not both toggled.
        states("/details", 3),
    ),
)

TABS = Area(
    "tabs",
    {
        "/tabs": page(
            """<div role=tablist><button role=tab aria-selected=true>First tab</button><button role=tab>Second tab</button>
            <button role=tab>Third tab</button></div><div id=panel></div><script>
            const tabs = [...document.querySelectorAll('[role=tab]')];
            const show = i => {
              tabs.forEach((tab, j) => tab.setAttribute('aria-selected', i === j));
              panel.replaceChildren();
              say('tab-' + (i + 1), panel);
            };
            tabs.forEach((tab, i) => tab.addEventListener('click', () => show(i)));
            show(0);</script>"""
        )
    },
    (shows("tab-1"), shows("tab-2", by="Second tab"), shows("tab-3", by="Third tab"), states("/tabs", 3)),
)

ACCORDION = Area(
    "accordion",
    {
        "/accordion": page(
            """<h3><button aria-expanded=false aria-controls=p1>Shipping</button></h3><div id=p1 hidden><f-accordion-1>found: accordion-1</f-accordion-1></div>
            <h3><button aria-expanded=false aria-controls=p2>Returns</button></h3><div id=p2 hidden><f-accordion-2>found: accordion-2</f-accordion-2></div><script>
            document.querySelectorAll('button').forEach(b => b.onclick = () => {
              const open = b.getAttribute('aria-expanded') === 'true';
              document.querySelectorAll('button').forEach(o => {
                o.setAttribute('aria-expanded', 'false');
                document.getElementById(o.getAttribute('aria-controls')).hidden = true;
              });
              b.setAttribute('aria-expanded', String(!open));
              document.getElementById(b.getAttribute('aria-controls')).hidden = open;
            });</script>"""
        )
    },
    # At most one is open at a time.
    (shows("accordion-1", by="Shipping"), shows("accordion-2", by="Returns"), states("/accordion", 3)),
)

CAROUSEL = Area(
    "carousel",
    {
        "/carousel": page(
            """<section aria-roledescription=carousel><button id=next>Next slide</button><div id=slide></div></section><script>
            let at = 0;
            const show = () => { slide.replaceChildren(); say('slide-' + (at + 1), slide); };
            next.onclick = () => { at = (at + 1) % 3; show(); };
            show();</script>"""
        )
    },
    # The button is the same in every slide, and what it does is not: a person presses it until nothing new shows.
    (shows("slide-1"), shows("slide-2", by="Next slide"), shows("slide-3", by="Next slide"), states("/carousel", 3)),
)

COMBOBOX_CLICK = Area(
    "combobox-click",
    {
        "/combobox-click": page(
            """<label for=c>City</label><input id=c role=combobox aria-expanded=false aria-controls=l aria-autocomplete=none readonly>
            <ul id=l role=listbox hidden><li role=option>Bergen<li role=option>Turku</ul><script>
            c.addEventListener('click', () => { l.hidden = !l.hidden; c.setAttribute('aria-expanded', String(!l.hidden)); });
            for (const option of l.children) option.onclick = () => {
              c.value = option.textContent; l.hidden = true; say('chosen-' + option.textContent.toLowerCase());
            };</script>"""
        )
    },
    (shows("chosen-bergen", by="Bergen"), shows("chosen-turku", by="Turku")),
)

COMBOBOX_KEYS = Area(
    "combobox-keys",
    {
        "/combobox-keys": page(
            """<label for=c>Fruit</label><input id=c role=combobox aria-expanded=false aria-controls=l aria-autocomplete=none>
            <ul id=l role=listbox hidden><li role=option>Quince<li role=option>Medlar</ul><script>
            c.addEventListener('keydown', event => {
              if (event.key !== 'ArrowDown') return;
              l.hidden = false; c.setAttribute('aria-expanded', 'true');
            });
            for (const option of l.children) option.onclick = () => {
              l.hidden = true; say('picked-' + option.textContent.toLowerCase());
            };</script>"""
        )
    },
    (shows("picked-quince", by="Quince"), shows("picked-medlar", by="Medlar")),
)

MODAL = Area(
    "modal",
    {
        "/modal": page(
            """<button onclick="d.showModal()">Open the dialog</button><button onclick="say('behind')">Behind</button>
            <dialog id=d><a href=/modal/next>Link in the dialog</a><button onclick="d.close()">Done</button></dialog>"""
        ),
        "/modal/next": found("in-dialog"),
    },
    (shows("in-dialog", by="Link in the dialog"), shows("behind", by="Behind"), states("/modal", 3)),
)

#: As dashboards and component libraries make them: a box that says it is modal, over a backdrop.
_ARIA_MODAL = """<style>.back, .over { position: fixed; inset: 0 } .back { background: #0008 }
.box { margin: 80px auto; width: 400px; background: white } [hidden] { display: none }</style>"""

ARIA_MODAL = Area(
    "aria-modal",
    {
        "/aria-modal": page(
            f"""{_ARIA_MODAL}<button onclick="b.hidden = o.hidden = false">Open the box</button>
            <button onclick="s.hidden = false">Open the side</button><button onclick="say('beneath')">Beneath</button>
            <div class=back id=b hidden></div>
            <div class=over id=o role=dialog aria-modal=true aria-label=Box hidden><div class=box>
            <a href=/aria-modal/next>Link in the box</a><x-part></x-part>
            <button onclick="b.hidden = o.hidden = true">Close the box</button></div></div>
            <div id=s role=dialog aria-modal=true hidden style="position:fixed;right:0;top:0;width:300px;height:300px">
            <a href=/aria-modal/side>Link at the side</a></div><script>
            document.querySelector('x-part').attachShadow({{ mode: 'open' }}).innerHTML = '<a href=/aria-modal/part>Link in a part</a>';
            </script>"""
        ),
        "/aria-modal/next": found("in-aria-modal"),
        "/aria-modal/part": found("in-aria-part"),
        "/aria-modal/side": found("in-aria-side"),
    },
    (
        shows("in-aria-modal", by="Link in the box"),
        shows("in-aria-part", by="Link in a part"),
        # What says it is modal and covers nothing is not: the page beside it can still be used.
        shows("in-aria-side", by="Link at the side"),
        shows("beneath", by="Beneath"),
        states("/aria-modal", 4),
    ),
)

MENU_BUTTON = Area(
    "menu-button",
    {
        "/menu-button": page(
            """<button id=b aria-haspopup=menu aria-expanded=false>Options</button>
            <ul id=m role=menu hidden><li role=menuitem tabindex=-1>First choice<li role=menuitem tabindex=-1>Second choice</ul><script>
            b.onclick = () => { m.hidden = !m.hidden; b.setAttribute('aria-expanded', String(!m.hidden)); };
            [...m.children].forEach((item, i) => item.onclick = () => { m.hidden = true; say('choice-' + (i + 1)); });
            addEventListener('keydown', e => { if (e.key === 'Escape') m.hidden = true; });</script>"""
        )
    },
    (shows("choice-1", by="First choice"), shows("choice-2", by="Second choice"), states("/menu-button", 4)),
)

POPOVER = Area(
    "popover",
    {
        "/popover": """<!doctype html><title>Popover</title><button popovertarget=p>Show the popover</button>
        <div id=p popover><a href=/popover/next>Link in the popover</a></div>""",
        "/popover/next": found("in-popover"),
    },
    (shows("in-popover", by="Link in the popover"), states("/popover", 2)),
)

CSS_TOGGLE = Area(
    "css-toggle",
    {
        "/css-toggle": """<!doctype html><title>Toggle</title><style>#t { position: absolute; opacity: 0 } #t:not(:checked) ~ nav
        { display: none }</style><input type=checkbox id=t><label for=t>Menu without script</label>
        <nav><a href=/css-toggle/next>Link in the menu</a></nav>""",
        "/css-toggle/next": found("css-toggle"),
    },
    (shows("css-toggle", by="Link in the menu"), states("/css-toggle", 2)),
)

TEXT_TABS = Area(
    "text-tabs",
    {
        "/text-tabs": page(
            """<button role=tab onclick="p.textContent = 'found: text-1'">Text one</button>
            <button role=tab onclick="p.textContent = 'found: text-2'">Text two</button><p id=p>found: text-1</p>"""
        )
    },
    # The documented limit: views that differ in texts alone are one state.
    (shows("text-1"), hidden("text-2"), states("/text-tabs", 1)),
)

HELD_BY_FOCUS = Area(
    "held-by-focus",
    {
        "/focus": page(
            """<style>.list { display: none } .within:focus-within .list { display: block }</style>
            <button onclick="palette.hidden = false; word.focus()">Palette</button>
            <div id=palette hidden><input id=word aria-label=Command onblur="setTimeout(() => palette.hidden = true, 150)">
            <ul><li><a href=/focus/palette>First command</a></ul></div>
            <button onclick="box.hidden = false; field.focus()">Combobox</button>
            <div id=box hidden><input id=field aria-label=City><p><a href=/focus/box>First city</a></p></div>
            <script>box.addEventListener('focusout', (event) => { if (!box.contains(event.relatedTarget)) box.hidden = true; })</script>
            <button onclick="note.focus()">Style sheet</button>
            <div class=within><input id=note aria-label=Note><p class=list><a href=/focus/within>First note</a></p></div>"""
        ),
        "/focus/palette": found("in-palette"),
        "/focus/box": found("in-box"),
        "/focus/within": found("in-within"),
    },
    (
        shows("in-palette", by="First command"),
        shows("in-box", by="First city"),
        shows("in-within", by="First note"),
    ),
)

AREAS = (
    HELD_BY_FOCUS,
    HOVER_MENUS, DETAILS, TABS, ACCORDION, CAROUSEL, COMBOBOX_CLICK, COMBOBOX_KEYS, MODAL, ARIA_MODAL, MENU_BUTTON, POPOVER, CSS_TOGGLE,
    TEXT_TABS,
)  # fmt: skip
