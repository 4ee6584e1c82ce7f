"""The tools of one page: those that it declares, and those that its forms show."""

import json

import pytest
from jsonschema import Draft202012Validator

from tests.browsers import BROWSERS
from tests.integration.test_page_script import guarded_page, look
from tests.sites.server import FixtureServer
from tests.sites.tool_forms import DIFFERENCES, FORMS, page_of_forms
from waygraph.pipeline.browser.page.script import WAYGRAPH


def only_tool(html):
    (tool,) = look(html).tools
    return tool, json.loads(tool.schema)


def shape(schema):
    """What inferred and declared schemas have in common, by property: type, choices, whether it is required."""

    def choices(given):
        inner = given.get("items", given)
        return given["type"], inner.get("type"), sorted(set(inner.get("enum", ())))

    return {name: (*choices(given), name in schema["required"]) for name, given in schema["properties"].items()}


@pytest.fixture(scope="module")
def schemas():
    """Schemas of all forms by name: as the browser derives them, and as they are inferred."""
    with FixtureServer({"/": page_of_forms(declared=True), "/plain": page_of_forms(declared=False)}) as site:

        async def run():
            async with guarded_page() as page:
                return [(await page.view.goto(site.at(path))).snapshot.tools for path in ("/", "/plain")]

        declared, inferred = BROWSERS.run(run())
    assert {tool.source for tool in declared} == {"form"}
    assert {tool.source for tool in inferred} == {"inferred"}
    by_title = {tool.title: tool for tool in inferred}
    return {tool.description: (json.loads(tool.schema), by_title[tool.description]) for tool in declared}


@pytest.mark.parametrize("form", FORMS)
def test_the_inferred_schema_of_a_form_is_that_of_the_browser(form, schemas):
    derived, tool = schemas[form]
    inferred = shape(json.loads(tool.schema))
    assert set(inferred) - set(shape(derived)) == DIFFERENCES.get(form, set())
    assert {name: inferred.get(name) for name in derived["properties"]} == shape(derived)


def test_the_schemas_that_the_browser_derives_are_kept_as_valid_json_schema_with_anchored_patterns(schemas):
    properties = [given for derived, _ in schemas.values() for given in derived["properties"].values()]
    for derived, _ in schemas.values():
        Draft202012Validator.check_schema(derived)
    assert not [each for each in properties if each.get("format", "").startswith("^")]
    patterns = [each["pattern"] for each in properties if "pattern" in each]
    assert patterns
    assert all(each.startswith("^") and each.endswith("$") for each in patterns)


def test_there_are_forty_forms():
    assert len(FORMS) == 40


def test_an_inferred_tool_says_what_its_form_is_for_and_where_it_is_sent():
    tool, schema = only_tool(
        """<title>t</title><h2>Old</h2>
        <form id=refund action="/orders/refund?from=list#top" method=post><h3>Refund an order</h3>
        <label>Order number <input name=order required minlength=4 maxlength=8 pattern="[A-Z]+"></label>
        <label>Amount <input type=number name=amount min=0 max=100 step=0.5 value=7></label>
        <label>Reason <select name=reason><option value=b>Broken<option value=l>Lost</select></label>
        <label>PIN <input type=password name=pin value=secret></label><input type=hidden name=token value=secret>
        <button>Refund it</button></form>"""
    )
    assert (tool.name, tool.title, tool.description) == ("refund_an_order", "Refund an order", "Refund it")
    assert (tool.source, tool.method, tool.read_only) == ("inferred", "POST", False)
    assert tool.target.endswith("/orders/refund")
    assert schema == {
        "type": "object",
        "properties": {
            "order": {
                "type": "string",
                "minLength": 4,
                "maxLength": 8,
                "pattern": "^(?:[A-Z]+)$",
                "description": "Order number",
            },
            "amount": {"type": "number", "minimum": 0, "maximum": 100, "multipleOf": 0.5, "description": "Amount"},
            "reason": {
                "type": "string",
                "anyOf": [
                    {"type": "string", "const": "b", "title": "Broken"},
                    {"type": "string", "const": "l", "title": "Lost"},
                ],
                "enum": ["b", "l"],
                "description": "Reason",
            },
            "pin": {"type": "string", "format": "password", "description": "PIN"},
        },
        "required": ["order"],
    }  # fmt: skip
    action = tool.element
    assert (action.kind, action.role, action.xpath, action.css) == (
        "submit",
        "form",
        "/html[1]/body[1]/form[1]",
        "#refund",
    )
    assert "secret" not in repr(tool)


@pytest.mark.parametrize(
    ("html", "name", "title"),
    [
        ("<h2>Page</h2><div><h3>Home</h3><form><button>Delete</button></form></div>", "delete_home", "Delete: Home"),
        ("<section><h3>Über uns</h3></section><form><button>Senden</button></form>", "senden", "Senden"),
        ("<form><input placeholder='Search docs'></form>", "search_docs", "Search docs"),
        ("<form title=Kürzen><h3>Other</h3><button>OK</button></form>", "kurzen", "Kürzen"),
        ("<form action=/orders/find><input name=q></form>", "find", ""),
        ("<form role=search><button>検索</button></form>", "search", "検索"),
        ("<form toolname=x><button>Not declared</button></form>", "not_declared", "Not declared"),
    ],
)
def test_an_inferred_tool_is_named_by_the_texts_of_its_form(html, name, title):
    tool, _ = only_tool(f"<title>t</title><main>{html}</main>")
    assert (tool.name, tool.title) == (name, title)


@pytest.mark.parametrize(
    ("page", "form", "title"),
    [
        ("Repo: Timeline", "<select name=y><option>a</select>", "Repo: Timeline"),
        ("Repo: Timeline", "<select name=y><option>a</select><button>Show</button>", "Show: Repo"),
        ("(3) Repo", "<select name=y><option>a</select>", "Repo"),
        ("Timeline", "<select name=y><option>a</select>", "Repo"),
        ("Repo: Timeline", "<select name=y><option>a</select><img name=title>", "Repo: Timeline"),
    ],
)
def test_a_form_that_only_the_name_of_its_site_describes_is_named_by_the_title_of_its_page(page, form, title):
    tool, _ = only_tool(f"<title>{page}</title><div><h1>Repo</h1></div><form>{form}</form>")
    assert tool.title == title


def test_groups_of_controls_outside_forms_are_tools():
    seen = look(
        """<title>t</title><div role=search><input placeholder="Search notes"><button>Go</button></div>
        <fieldset><legend>Nickname</legend><input name=nick><button>Change</button></fieldset>
        <div role=toolbar aria-label=Bold><button>B</button></div><div><input name=loose><button>Loose</button></div>
        <div role=group><div role=group aria-label=Inner><input name=inner><button>In</button></div></div>"""
    )
    assert [
        (tool.name, tool.method, tool.target, list(json.loads(tool.schema)["properties"])) for tool in seen.tools
    ] == [
        ("go", "", "", ["search_notes"]),
        ("nickname", "", "", ["nick"]),
        ("inner", "", "", ["inner"]),
    ]


@pytest.mark.parametrize(
    "hidden",
    [
        "<form hidden><input name=q></form>",
        "<dialog><form><input name=q></form></dialog>",
        "<div inert><form><input name=q></form></div>",
        "<div aria-hidden=true><form><input name=q></form></div>",
        "<form><input type=hidden name=q></form>",
        "<form><input name=q></form><dialog id=d>Wait</dialog><script>d.showModal()</script>",
    ],
)
def test_forms_that_no_person_can_use_are_no_tools(hidden):
    assert look(f"<title>t</title>{hidden}").tools == ()


def test_forms_of_shadow_roots_and_frames_are_tools_of_the_page():
    frame = "<form id=f><input name=in_frame><button>Same</button></form>"
    seen = look(
        f"""<title>t</title><form><input name=outside><button>Same</button></form><x-box></x-box>
        <iframe srcdoc="{frame}"></iframe><script>
        customElements.define("x-box", class extends HTMLElement {{ connectedCallback() {{
          this.attachShadow({{mode: "open"}}).innerHTML = "<form><input name=in_root><button>Same</button></form>";
        }} }})</script>"""
    )
    assert [(tool.name, tool.frame, tool.element.frame, tool.element.xpath) for tool in seen.tools] == [
        ("same", "", (), "/html[1]/body[1]/form[1]"),
        ("same_2", "", (), "/html[1]/body[1]/x-box[1] >>> /form[1]"),
        ("same_3", "about:srcdoc", ("/html[1]/body[1]/iframe[1]",), "/html[1]/body[1]/form[1]"),
    ]


def test_a_script_that_takes_the_submission_of_a_form_without_address_may_do_anything():
    for attributes, method in (("", ""), ("action=/x", "GET"), ("method=get", "GET"), ("method=dialog", "dialog")):
        tool, _ = only_tool(f"<form id=f {attributes}><input name=q></form><script>f.onsubmit = () => false</script>")
        assert (tool.method, tool.read_only) == (method, method == "GET")


@pytest.mark.parametrize(
    ("html", "method", "target"),
    [
        ("<form method=post action='/sub?csrf_token=1f3'><input name=mail></form>", "POST", "/sub"),
        ("<form action='/find?session=1f3'><input name=q></form>", "GET", "/find"),
        ("<form><input name=q></form>", "GET", ""),
        ("<form method=post action=''><input name=mail></form>", "POST", ""),
        ("<form><input name=q><button formaction='/find?session=1f3'>Go</button></form>", "GET", "/find"),
    ],
)
def test_the_address_of_a_form_is_the_same_on_all_pages_and_for_all_sessions(html, method, target):
    tool, _ = only_tool(html)
    assert (tool.method, tool.target and "/" + tool.target.split("/", 3)[3]) == (method, target)


def test_choices_are_those_that_can_be_made_and_steps_are_those_of_the_first_value():
    _, schema = only_tool(
        f"""<form><select name=one><option>a<option disabled>b<optgroup label=old disabled><option>c</optgroup></select>
        <select name=same>{"<option>x" * 600}</select>
        <select name=many>{"".join(f"<option>{n}" for n in range(501))}</select>
        <input type=number name=odd step=10 value=5><input type=number name=even step=10 value=20>
        <input type=number name=from min=20 value=25 step=10></form>"""
    )
    given = schema["properties"]
    assert (given["one"]["enum"], given["same"]["enum"], "enum" in given["many"]) == (["a", "b"], ["x"], False)
    steps = {name: given[name].get("multipleOf") for name in ("odd", "even", "from")}
    assert steps == {"odd": None, "even": 10, "from": 10}


def test_polyfills_that_do_not_answer_share_one_wait_and_are_asked_once():
    frame = (
        "<script>navigator.modelContext = {getTools: () => { top.asked += 1; return new Promise(() => {}); }}</script>"
    )
    html = f"""<title>t</title><script>window.asked = 0; navigator.modelContext = {{getTools: () => [
      {{name: 'quick', description: 'Answers'}}]}}</script>{f'<iframe srcdoc="{frame}"></iframe>' * 3}"""

    async def run(site):
        async with guarded_page() as page:
            first = (await page.view.goto(site.url)).snapshot
            second = await page.view.observe()
            return [[tool.name for tool in seen.tools] for seen in (first, second)], await page.page.evaluate("asked")

    with FixtureServer({"/": html}) as site:
        assert BROWSERS.run(run(site)) == ([["quick"]] * 2, 3)


def test_the_number_of_tools_and_the_size_of_schemas_are_bounded():
    forms = "".join(f"<form><input name=q{n}><button>B</button></form>" for n in range(203))
    options = "".join(f"<option>{n}{'x' * 200}" for n in range(499))
    seen = look(f"<title>t</title><form><select name=s>{options}</select></form>{forms}")
    assert (len(seen.tools), seen.tools_cut, seen.schemas_cut) == (200, 4, 1)
    assert seen.tools[0].schema == '{"type":"object"}'


def test_texts_of_tools_have_no_half_characters():
    tool, _ = only_tool(
        "<form><input><button>Go</button></form><script>document.querySelector('input').name = 'a\\ud800';"
        "document.querySelector('button').textContent = 'Go\\udc00'</script>"
    )
    assert (tool.title, '"a\N{REPLACEMENT CHARACTER}"' in tool.schema) == ("Go\N{REPLACEMENT CHARACTER}", True)


# ---- fill and submit ----

FORM = """<title>t</title><form id=f action=/sent><input name=text><textarea name=area></textarea>
  <input type=number name=n max=5><input type=date name=day><input type=checkbox name=yes>
  <select name=one><option value=a>A<option value=b>B</select>
  <select name=many multiple><option>x<option>y<option>z</select>
  <label><input type=radio name=r value=1>1</label><label><input type=radio name=r value=2>2</label>
  <input type=checkbox name=c value=p><input type=checkbox name=c value=q checked><button>Go</button></form>
  <script>window.events = []; for (const t of ["input", "change", "click"]) {
    f.addEventListener(t, (e) => events.push(`${t} ${e.target.name}`));
  }</script>"""
VALUES = {
    "text": "T",
    "area": "two\nlines",
    "n": 3,
    "day": "2026-02-03",
    "yes": True,
    "one": "b",
    "many": ["x", "z"],
    "r": "2",
    "c": ["p"],
}


def used(html, values, *, submit=False):
    """Fill the only tool of a page; return both results, the page's events, and the requests of the server."""

    async def run(site):
        async with guarded_page() as page:
            (tool,) = (await page.view.goto(site.url)).snapshot.tools
            call = f"given => {WAYGRAPH}.fillTool(...given)"
            filled = json.loads(await page.page.evaluate(call, [tool.element.to_json(), values]))
            events = await page.page.evaluate("window.events")
            sent = {}
            if submit:
                sent = json.loads(
                    await page.page.evaluate(f"given => {WAYGRAPH}.submitTool(given)", tool.element.to_json())
                )
                await page.view.observe()
            return filled, sent, events

    with FixtureServer({"/": html, "/sent": "<title>sent</title>"}) as site:
        return (*BROWSERS.run(run(site)), site.requests)


def test_a_tool_is_filled_with_the_events_of_a_person_and_then_submitted():
    filled, sent, events, requests = used(FORM, VALUES, submit=True)
    assert filled == {"found": True, "filled": list(VALUES), "missing": [], "rejected": []}
    assert (sent["submitted"], sent["prevented"], sent["leaves"], sent["invalid"]) == (True, False, False, [])
    assert {"input text", "change text", "input area", "change one", "click yes", "change yes", "change r"} <= set(
        events
    )
    (path,) = [path for _, path in requests if path.startswith("/sent")]
    assert path.partition("?")[2] == "text=T&area=two%0D%0Alines&n=3&day=2026-02-03&yes=on&one=b&many=x&many=z&r=2&c=p"


SENT = "onclick=\"events.push('click ' + this.id); return false\""
EVENTS = """<title>t</title><script>window.events = [];
  onsubmit = (e) => events.push('submit ' + e.submitter?.id)</script>"""
BUTTON, FIELDS = f"<button type=button id=a {SENT}>Go</button>", "<input name=q><input name=r>"


@pytest.mark.parametrize(
    ("form", "event", "named", "method"),
    [
        # The button that submits does, whatever else there is.
        (f"<form action=/sent>{FIELDS}{BUTTON}<button id=b>B</button></form>", "submit b", "", "GET"),
        (f"<form action=/sent>{FIELDS}{BUTTON}<input type=image id=b alt=B></form>", "submit b", "", "GET"),
        (f"<form action=/sent>{FIELDS}</form>", "submit undefined", "", "GET"),
        # No button submits it: the only one is pressed, and may do anything.
        (f"<form action=/sent>{FIELDS}{BUTTON}</form>", "click a", "Go", ""),
        (f"<form action=#><input name=q>{BUTTON}<button type=button hidden>No</button></form>", "click a", "Go", ""),
        (f"<form><input name=q><a role=button href=# id=a {SENT}>Go</a><button type=reset>No</button></form>",
         "click a", "Go", ""),
        (f"<div role=search><input name=q><button id=a {SENT}>Go</button></div>", "click a", "Go", ""),
        (f"<div role=search><input name=q><button type=button>No</button><button id=a {SENT}>Go</button></div>",
         "click a", "Go", ""),
        # Enter sends the only field to the address of the form; such a button clears it, say.
        (f"<form action=/sent><input name=q>{BUTTON}</form>", "submit undefined", "", "GET"),
    ],
)  # fmt: skip
def test_a_form_is_sent_by_the_button_that_submits_it_else_by_the_only_one(form, event, named, method):
    async def run(site):
        async with guarded_page() as page:
            (tool,) = (await page.view.goto(site.url)).snapshot.tools
            call = f"given => {WAYGRAPH}.fillTool(...given)"
            await page.page.evaluate(call, [tool.element.to_json(), {"q": "x"}])
            sent, events = await page.page.evaluate(f"() => [{WAYGRAPH}.submitTool(), window.events]")
            return tool, json.loads(sent), events

    with FixtureServer({"/": EVENTS + form, "/sent": "<title>sent</title>"}) as site:
        tool, sent, events = BROWSERS.run(run(site))
    assert (sent["submitted"], sent["pressed"], events) == (True, named, [event])
    assert (tool.method, tool.read_only) == (method, method == "GET")


@pytest.mark.parametrize(
    "form",
    [
        "<form><input name=q><button type=button {}>Preview</button><button type=button {}>Send</button></form>",
        "<fieldset><legend>Word</legend><input name=q><button {}>Preview</button><button {}>Send</button></fieldset>",
    ],
)
def test_none_of_several_buttons_that_do_not_submit_is_pressed(form):
    _, sent, events, requests = used(EVENTS + form.format(SENT, SENT), {"q": "x"}, submit=True)
    assert (sent["submitted"], sent["choices"], events) == (False, ["Preview", "Send"], [])
    assert [path for _, path in requests if path != "/favicon.ico"] == ["/"]
    tool, _ = only_tool(EVENTS + form.format(SENT, SENT))
    assert (tool.method, tool.read_only, tool.name) == ("", False, "word" if "Word" in form else "form")


def test_a_form_that_is_drawn_anew_while_it_is_filled_is_sent_with_all_values():
    html = """<title>t</title><form id=f action=/sent></form><script>
      const draw = (land) => f.innerHTML = `<select name=land><option>a<option ${land === "b" && "selected"}>b</select>
        <select name=city>${["x", "y"].map((city) => `<option>${land}${city}`).join("")}</select>
        <textarea name=note></textarea><button>Go</button>`;
      draw("a");
      f.addEventListener("change", (e) => { if (e.target.name === "land") draw(e.target.value); })</script>"""
    values = {"city": "by", "note": "one\r\ntwo", "land": "b"}
    filled, _, _, requests = used(html, values, submit=True)
    assert (filled["filled"], filled["missing"], filled["rejected"]) == (["land", "city", "note"], [], [])
    assert "/sent?land=b&city=by&note=one%0D%0Atwo" in [path for _, path in requests]


def test_values_that_the_page_takes_away_are_rejected_and_those_that_it_rewrites_are_not():
    html = """<title>t</title><form id=f action=/sent><input name=phone><input name=code><input name=late>
      <button>Go</button></form><script>
      f.phone.oninput = () => { f.phone.value = f.phone.value.replace(/^(...)/, "($1) "); };
      f.code.oninput = () => { f.code.value = ""; };
      f.late.oninput = () => queueMicrotask(() => { f.late.value = "other"; });</script>"""
    filled, *_ = used(html, {"phone": "1234567", "code": "AB", "late": "mine"})
    assert filled["filled"] == ["phone"]
    assert filled["rejected"] == [[name, "the page does not keep the value"] for name in ("code", "late")]


def test_filling_alone_submits_nothing():
    *_, requests = used(FORM, VALUES)
    assert not any(path.startswith("/sent") for _, path in requests)


def test_values_that_a_form_does_not_take_are_named():
    filled, sent, _, requests = used(FORM, {"text": "T", "other": 1, "day": "soon", "one": "c", "n": 9}, submit=True)
    assert (filled["filled"], filled["missing"], [name for name, _ in filled["rejected"]]) == (
        ["text", "n"],
        ["other"],
        ["day", "one"],
    )
    assert (sent["submitted"], sent["invalid"]) == (False, ["n"])
    assert not any(path.startswith("/sent") for _, path in requests)
