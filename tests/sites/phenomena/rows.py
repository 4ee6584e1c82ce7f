"""Lists whose listener is around them and says nothing of what it reacts to: rows, items, cards, days, nodes of a tree."""

from tests.sites.answers import Area, Expect, edge, found, never, page, shows, skipped, states

PEOPLE = (("Ann", "Berlin"), ("Bob", "Paris"), ("Cy", "Rome"), ("Dee", "Oslo"), ("Eve", "Bern"), ("Fay", "Wien"))

#: What the listeners call: no source of a listener names an element.
_PICK = """<script>
const pick = (event, tag = list.dataset.of) => {
  let node = event.target;
  while (node && node.localName !== tag) node = node.parentElement;
  if (node && list.contains(node)) say(`${list.dataset.name}-${[...list.querySelectorAll(tag)].indexOf(node)}`);
};
</script>"""
_LISTEN = "<script>list.addEventListener('click', pick.bind(null))</script>"
_LISTEN_EVERYWHERE = "<script>document.addEventListener('click', (event) => pick(event))</script>"


def _table(name: str, more: str = "", attributes: str = "") -> str:
    rows = "".join(f"<tr><td>{who}<td>{where}{more}</tr>" for who, where in PEOPLE)
    head = "<thead><tr><th>Name<th>City</thead>"
    return f"<table>{head}<tbody id=list data-of=tr data-name={name} {attributes}>{rows}</tbody></table>"


def _rows(name: str, by: str = "{0} {1}") -> tuple[Expect, ...]:
    return tuple(shows(f"{name}-{at}", by=by.format(*PEOPLE[at])) for at in range(6))


def _of_body(html: str, name: str, listen: str = _LISTEN, answers: tuple[Expect, ...] = (), count: int = 7) -> Area:
    return Area(name, {f"/{name}": page(html + _PICK + listen)}, (*(answers or _rows(name)), states(f"/{name}", count)))


def _that_go(name: str, listen: str, attributes: str = "") -> Area:
    """A list whose items are removed, at the server as well, when they are clicked."""
    script = f"<script>const deleteItem = (e) => {{ fetch('/{name}/gone'); e.target.remove(); }}; {listen}</script>"
    items = "".join(f"<li>{who} of {where}</li>" for who, where in PEOPLE)
    answers = (skipped("hazard", by="Ann of Berlin"), never(f"/{name}/gone"), states(f"/{name}", 1))
    return Area(
        name, {f"/{name}": page(f"<ul id=list {attributes}>{items}</ul><f-{name}>To do</f-{name}>{script}")}, answers
    )


_CARDS = "".join(f"<section class=card><b>{who} </b><i>{where}</i></section>" for who, where in PEOPLE)
_DAYS = "".join("<tr>" + "".join(f"<td>{7 * week + day}" for day in range(1, 8)) + "</tr>" for week in range(2))
_TREE = "<li><span>Guides</span><ul><li>Install</li><li>Upgrade</li></ul></li><li>Posts<ul><li>Old posts</li></ul></li>"

_PLAN_NAMES = ("Basic", "Team", "Firm")
_PLANS = (
    "".join(
        f"<div class=plan id={name} style='cursor: pointer'><h3>{name}</h3><ul>"
        + "".join(f"<li>{name} {part}</li>" for part in ("mail", "disk", "phone", "chat"))
        + "</ul></div>"
        for name in _PLAN_NAMES
    )
    + """<script>for (const plan of document.querySelectorAll('.plan'))
        plan.addEventListener('click', (event) => { event.preventDefault(); say(`plan-${plan.id.toLowerCase()}`); });
    </script>"""
)

AREAS = (
    _of_body(_table("rows-bound"), "rows-bound"),
    _of_body(
        _table("rows-called"), "rows-called", "<script>list.addEventListener('click', (e) => { pick(e); })</script>"
    ),
    _of_body(_table("rows-property"), "rows-property", "<script>list.onclick = pick</script>"),
    _of_body(_table("rows-attribute", attributes='onclick="pick(event)"'), "rows-attribute", ""),
    _of_body(
        _table("rows-object"), "rows-object", "<script>list.addEventListener('click', { handleEvent: pick })</script>"
    ),
    # As a framework keeps them: at the element, called by a listener of its root.
    _of_body(
        _table("rows-framework"),
        "rows-framework",
        """<script>list.__reactProps$x = { onClick: (event) => pick(event) };
        document.documentElement._reactListening = true;
        document.documentElement.addEventListener('click', (event) => {
          for (let node = event.target; node; node = node.parentElement) node.__reactProps$x?.onClick(event);
        })</script>""",
    ),
    _of_body(
        "<ul id=list data-of=li data-name=rows-items>" + "".join(f"<li>{a} of {b}" for a, b in PEOPLE) + "</ul>",
        "rows-items",
        answers=_rows("rows-items", "{0} of {1}"),
    ),
    _of_body(f"<div id=list data-of=section data-name=rows-cards style='display: grid'>{_CARDS}</div>", "rows-cards"),
    _of_body(
        f"<table id=list data-of=td data-name=rows-days>{_DAYS}</table>",
        "rows-days",
        answers=tuple(shows(f"rows-days-{at}", by=str(at + 1)) for at in range(14)),
        count=15,
    ),
    _of_body(
        f"<ul id=list data-of=li data-name=rows-tree>{_TREE}</ul>",
        "rows-tree",
        answers=tuple(
            shows(f"rows-tree-{at}", by=by)
            for at, by in enumerate(("Guides", "Install", "Upgrade", "Posts", "Old posts"))
        ),
        count=6,
    ),
    # A button of a row is one thing to click, the row another; a link in its last cell as well.
    _of_body(
        _table("rows-buttons", "<td><button onclick='event.stopPropagation(); say(`starred`)'>Star</button>"),
        "rows-buttons",
        answers=(*_rows("rows-buttons", "{0} {1} Star"), shows("starred", by="Star")),
        count=8,
    ),
    Area(
        "rows-links",
        {
            "/rows-links": page(_table("rows-links", "<td><a href=/rows-links/more>More</a>") + _PICK + _LISTEN),
            "/rows-links/more": found("rows-more"),
        },
        (*_rows("rows-links", "{0} {1} More"), shows("rows-more", by="More"), states("/rows-links", 7)),
    ),
    # A card is one thing to click, and its list is text. The cursor of a list is that of its items.
    Area(
        "rows-plans",
        {"/rows-plans": page(_PLANS)},
        (*(shows(f"plan-{name.lower()}", by=f"{name} {name} mail") for name in _PLAN_NAMES), states("/rows-plans", 4)),
    ),
    _of_body(_table("rows-pointer", attributes="style='cursor: pointer'"), "rows-pointer"),
    # The items are as dangerous as a button with this handler.
    _that_go("rows-that-go-attribute", "", 'onclick="deleteItem(event)"'),
    _that_go("rows-that-go-called", "list.addEventListener('click', (e) => deleteItem(e));"),
    _that_go("rows-that-go-bound", "list.addEventListener('click', deleteItem.bind(null));"),
    _that_go("rows-that-go-leaf", "list.onclick = (e) => { if (e.target) deleteItem(e); };"),
    _that_go("rows-that-go-named", "list.onclick = (e) => { if (e.target.closest('li')) deleteItem(e); };"),
    _that_go("rows-that-go-page", "document.addEventListener('click', (e) => deleteItem(e));"),
    # Sets have a method of this name.
    _of_body(
        _table("rows-of-a-set"),
        "rows-of-a-set",
        "<script>const open = new Set(); list.addEventListener('click', (e) => { open.delete(e); pick(e); })</script>",
    ),
    # One list of the page reacts, and nothing says which.
    _of_body(
        "<ul><li>First fact<li>Second fact<li>Third fact<li>Fourth fact<li>Fifth fact</ul>" + _table("rows-some"),
        "rows-some",
        _LISTEN_EVERYWHERE,
        (*_rows("rows-some"), edge("First fact")),
    ),
)
