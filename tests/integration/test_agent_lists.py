"""Native lists of real pages: every option is chosen by one action, whatever actions an agent has."""

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.sites.server import FixtureServer
from waygraph.agents.actions import AgentSession, SessionOptions, parse_brackets

LONG = "".join(f"<option>City {number}" for number in range(1, 91))
LISTS = f"""<!doctype html><title>Lists</title>
<label>Size <select id=size onchange="said.textContent = 'Size ' + value"><option>Small<option disabled>Medium
  <option>Large<option hidden>Secret</select></label>
<label>City <select id=city>{LONG}</select></label>
<label>Food <select id=food><optgroup label=Fruit><option>Pear<option>Other</optgroup>
  <optgroup label=Roots disabled><option>Beet</optgroup>
  <optgroup label=Rest><option value=rest>Other</optgroup></select></label>
<label>Colours <select id=colours multiple size=3>
  <option selected>Red<option selected>Green<option>Blue</select></label>
<label>Language <input id=language list=languages>
  <datalist id=languages><option>Norwegian<option>Swedish</datalist></label>
<label>Page <select onchange="location.href = value">
  <option value="">Choose<option value=/next>Next page</select></label>
<label>Country <select id=country onchange="region.innerHTML = '<option>' + value + ' East<option>' + value + ' West'">
  <option>Chile<option>Peru</select></label>
<label>Region <select id=region><option>Chile East<option>Chile West</select></label>
<label>Manage <select><option>Choose<option>Delete my account</select></label>
<iframe srcdoc="<label>Framed <select><option>One<option>Two</select></label>"></iframe>
<x-box></x-box><p id=said></p>
<script>customElements.define("x-box", class extends HTMLElement {{
  constructor() {{ super(); this.attachShadow({{mode: "open"}}).innerHTML =
    "<label>Shadowed <select><option>Low<option>High</select></label>"; }}
}})</script>"""
VALUES = """() => Object.fromEntries(['size', 'city', 'food', 'colours', 'language', 'region'].map((id) => {
  const one = document.getElementById(id);
  return [id, one.multiple ? Array.from(one.selectedOptions, (each) => each.value) : one.value];
}))"""


@pytest.fixture(scope="module")
def site():
    with FixtureServer({"/": LISTS, "/next": "<title>Next</title><p>Arrived"}) as server:
        yield server


def run(site, steps, **options):
    """Run `steps(session, page)` on the page with the lists."""

    async def work():
        browser = await BROWSERS.browser()
        context = await browser.new_context()
        try:
            page = await context.new_page()
            await page.goto(site.url)
            async with AgentSession(page, SessionOptions(browser=LOOPBACK_ONLY, **options)) as session:
                return await steps(session, page)
        finally:
            await context.close()

    return BROWSERS.run(work())


def ref_of(observation, option, of_list):
    """Return the id of an option of the list with a name."""
    return next(
        each.ref
        for each in observation.elements
        if each.name == option and each.list_ref and observation.elements.get(each.list_ref).name == of_list
    )


async def choose(session, option, of_list):
    observation = await session.observe()
    return await session.act(parse_brackets(f"click [{ref_of(observation, option, of_list)}]"))


def test_a_click_on_an_option_chooses_it(site):
    async def steps(session, page):
        reports = [
            await choose(session, option, of_list)
            for option, of_list in [
                ("Large", "Size"), ("City 90", "City"), ("Other (2)", "Food"), ("Swedish", "Language"),
                ("Peru", "Country"), ("Peru West", "Region"), ("Two", "Framed"), ("High", "Shadowed"),
            ]
        ]  # fmt: skip
        return reports, await page.evaluate(VALUES), (await session.observe()).text

    reports, values, text = run(site, steps)
    assert [report.status for report in reports] == ["done"] * 8
    assert "Chose 'Large' in [1] combobox 'Size'." in reports[0].message
    assert {**values, "colours": []} == {
        "size": "Large", "city": "City 90", "food": "rest", "colours": [], "language": "Swedish", "region": "Peru West",
    }  # fmt: skip
    assert "'Size Large'" in text
    assert "'Framed' [value: Two]" in text
    assert "'Shadowed' [value: High]" in text


def test_a_list_is_chosen_from_by_type_too_which_every_agent_has(site):
    async def steps(session, page):
        observation = await session.observe()
        (city,) = [each.ref for each in observation.elements if each.name == "City"]
        done = await session.act(parse_brackets(f"type [{city}] [city 77]"))
        wrong = await session.act(parse_brackets(f"type [{city}] [Paris]"))
        vague = await session.act(parse_brackets(f"type [{city}] [city 8]"))
        return done, wrong, vague, await page.evaluate(VALUES)

    done, wrong, vague, values = run(site, steps, allowed=("click", "type", "show", "stop"))
    assert (done.status, wrong.status, vague.status) == ("done", "invalid", "done")
    assert "has no option 'Paris'; its options are 'City 1', 'City 2'" in wrong.message
    assert values["city"] == "City 8"


def test_the_options_of_a_list_with_several_choices_are_taken_and_taken_back(site):
    async def steps(session, page):
        taken = await choose(session, "Blue", "Colours")
        back = await choose(session, "Red", "Colours")
        return taken, back, await page.evaluate(VALUES)

    taken, back, values = run(site, steps)
    assert "Chose 'Blue' in" in taken.message
    assert "Took back 'Red' in" in back.message
    assert values["colours"] == ["Green", "Blue"]
    assert "Green [selected: true]" in back.observation.text


def test_options_that_cannot_be_chosen_say_so(site):
    async def steps(session, page):
        disabled = [await choose(session, "Medium", "Size"), await choose(session, "Beet", "Food")]
        observation = await session.observe()
        medium = ref_of(observation, "Large", "Size")
        await page.evaluate("size.options[2].disabled = true")
        return *disabled, await session.act(parse_brackets(f"click [{medium}]")), observation

    medium, beet, frozen, observation = run(site, steps)
    assert medium.message == "[3] option 'Medium' is disabled; something else has to be done first."
    assert beet.status == "invalid"
    assert frozen.message == "[4] option 'Large' is disabled."
    assert "Secret" not in observation.text


def test_a_choice_that_loads_a_page_is_reported(site):
    report = run(site, lambda session, _: choose(session, "Next page", "Page"))
    assert report.has("navigated")
    assert report.observation.title == "Next"


def test_an_option_is_gated_by_its_whole_name_however_it_is_chosen(site):
    async def steps(session, page):
        clicked = await choose(session, "Delete my account", "Manage")
        observation = await session.observe()
        (of_list,) = [each.ref for each in observation.elements if each.name == "Manage"]
        return clicked, await session.act(parse_brackets(f"type [{of_list}] [my account]"))

    assert [report.status for report in run(site, steps)] == ["refused", "refused"]


def test_a_long_list_is_short_until_it_is_shown(site):
    async def steps(session, page):
        first = await session.observe()
        (city,) = [each.ref for each in first.elements if each.name == "City"]
        shown = await session.act(parse_brackets(f"show [{city}]"))
        again = await session.act(parse_brackets(f"show [{city}]"))
        return city, first, shown, again

    city, first, shown, again = run(site, steps)
    assert f"'City' [value: City 1] [{int(city) + 1}] City 1;" in first.text
    assert f"; … 82 more, show [{city}]" in first.text
    assert "City 50" not in first.text
    assert (shown.status, shown.events) == ("kept", ())
    assert f"[{int(city) + 50}] City 50;" in shown.observation.text
    assert again.status == "invalid"


def test_without_the_action_show_nothing_is_left_out(site):
    text = run(site, lambda session, _: session.observe(), allowed=("click", "stop")).text
    assert "City 50" in text
