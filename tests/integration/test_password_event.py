"""Which pages with password fields ask an agent for its password, and which set one."""

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY
from tests.sites.server import FixtureServer
from waygraph.agents.actions import AgentSession, SessionOptions, parse_brackets

SEARCH = "<form action=/><input name=q aria-label=Search></form>"
ASKS = {
    "login": "<form><input><input type=password autocomplete=current-password><input type=checkbox></form>",
    "login-of-an-organisation": "<form><select><option>A</select><input name=user><input type=password></form>",
    "login-without-a-form": "<input aria-label=User><input type=password><button>Log in</button>",
    "unlock-dialog": "<dialog open><input type=password><button>Unlock</button></dialog>" + "<input>" * 5,
    "login-beside-a-sign-up": """<form><input name=user><input type=password></form>
        <form><input name=mail><input type=password autocomplete=new-password></form>""",
}
SETS = {
    "sign-up": "<form><input name=user><input name=mail><input type=password><input type=password></form>",
    "edit-user": """<form><input name=username><input name=first><input name=last><input type=email>
        <input type=password autocomplete=new-password><input type=password autocomplete=new-password></form>""",
    "edit-user-with-one-field": "<form><input><input><input><select><option>Admin</select><input type=password></form>",
    "change-password": "<form><input type=password><input type=password><input type=password></form>",
    "reset-password": "<form><input type=password autocomplete=new-password></form>",
    "profile": """<form><input><input><input type=password><input type=password><input type=password></form>
        <form><input type=password><input type=checkbox></form>""",
    "hidden-login": "<form hidden><input><input type=password></form>",
}


@pytest.fixture(scope="module")
def site():
    pages = {f"/{name}": f"<title>{name}</title>{SEARCH}{body}" for name, body in (ASKS | SETS).items()}
    with FixtureServer({"/": "<title>Start</title>"} | pages) as server:
        yield server


@pytest.mark.parametrize("name", [*ASKS, *SETS])
def test_only_pages_that_let_somebody_in_ask_for_a_password(site, name):
    async def work():
        browser = await BROWSERS.browser()
        context = await browser.new_context()
        try:
            page = await context.new_page()
            await page.goto(site.at("/"))
            async with AgentSession(page, SessionOptions(browser=LOOPBACK_ONLY)) as session:
                await session.observe()
                return await session.act(parse_brackets(f"goto [{site.at(f'/{name}')}]"))
        finally:
            await context.close()

    report = BROWSERS.run(work())
    assert report.has("asks_password") == (name in ASKS)
    if name != "hidden-login":
        assert report.observation.snapshot.password, "the explorer's own rule stays"
