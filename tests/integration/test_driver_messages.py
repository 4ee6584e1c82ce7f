"""How many messages to the browser's driver each part of the work takes: numbers that do not depend on the machine."""

from collections import Counter
from contextlib import contextmanager

from tests.browsers import BROWSERS
from tests.exploring import explore
from tests.integration.test_page_script import guarded_page
from tests.sites.server import FixtureServer


@contextmanager
def sent_through(browser, monkeypatch):
    """Count the messages to the driver of a browser inside the block, by command or method of the DevTools protocol."""
    driver = browser._impl_obj._connection
    sent, send = Counter(), driver.onmessage

    def count(message):
        method = message["params"]["method"] if message["method"] == "send" else message["method"]
        sent[method] += method != "Browser.getVersion"  # asked by the clock: whether the browser still responds
        send(message)

    with monkeypatch.context() as patch:
        patch.setattr(driver, "onmessage", count)
        yield sent


async def explorers_browser():
    async with (await BROWSERS.pool()).lease() as lease:
        return lease.browser


def explored(pages, monkeypatch, **settings):
    """Return the map of a site, and the messages that exploring it took."""
    browser = BROWSERS.run(explorers_browser())
    with FixtureServer(pages) as site, sent_through(browser, monkeypatch) as sent:
        return explore(site.url, workers=1, robots=False, **settings).graph, sent


def test_a_capture_draws_the_page_once_and_calls_its_script_once(monkeypatch):
    async def run(site):
        async with guarded_page() as page:
            await page.view.goto(site.url)
            with sent_through(page.page.context.browser, monkeypatch) as sent:
                await page.capture()
            return dict(sent)

    with FixtureServer({"/": "<title>t</title><h1>Page</h1>" + "<p><a href=/x>Link</a>" * 500}) as site:
        assert BROWSERS.run(run(site)) == {"Page.captureScreenshot": 1, "Runtime.evaluate": 1}


def test_states_that_are_known_are_not_captured_again(monkeypatch):
    links = "".join(f"<a href=/{page}>To {page}</a>" for page in "abc")
    dialog = "<button onclick='box.hidden = !box.hidden'>More</button><div id=box hidden><a href=/d>Last</a></div>"
    pages = {f"/{page}": f"<title>{page}</title><h1>Page {page}</h1>{links}{dialog}" for page in "abcd"}
    graph, sent = explored({"/": f"<title>Start</title>{links}", **pages}, monkeypatch)
    assert len(graph) == 8
    assert len([edge for edge in graph.edges if not edge.inherited]) > 8
    assert sent["Page.captureScreenshot"] == 8


def messages_for_each(monkeypatch, pages_with):
    """Return the messages that each further state of a site takes."""
    (few, start), (many, more) = (explored(pages_with(states), monkeypatch, depth=1) for states in (3, 8))
    assert len(many) == len(few) + 5
    return {what: (more[what] - start[what]) / 5 for what in more if more[what] > start[what]}


def test_a_state_within_a_page_takes_twelve_messages(monkeypatch):
    def boxes(states):
        toggles = (
            f"<button onclick='b{i}.hidden = !b{i}.hidden'>Open {i}</button><p id=b{i} hidden><b>Part {i}</b></p>"
            for i in range(states)
        )
        return {"/": f"<title>t</title>{''.join(toggles)}"}

    assert messages_for_each(monkeypatch, boxes) == {
        # Find, and settle with the snapshot; find and settle again to revert; HTML and accessibility snapshot.
        "Runtime.evaluate": 5,
        "mouseClick": 2,
        "mouseMove": 2,
        # What the state left, and whether the revert took it back.
        "cookies": 2,
        "Page.captureScreenshot": 1,
    }


def test_a_page_behind_a_link_takes_fourteen_messages(monkeypatch):
    def linked(states):
        links = "".join(f"<a href=/{i}>To {i}</a>" for i in range(states))
        text = "".join(f"<p>Paragraph {i} of some length." for i in range(30))
        pages = {f"/{i}": f"<title>{i}</title><h1>Page {i}</h1>{text}{'<hr>' * i}" for i in range(states)}
        return {"/": f"<title>t</title>{links}", **pages}

    assert messages_for_each(monkeypatch, linked) == {
        # Find, settle, tell the page that it stays; settle and look at the target; HTML and accessibility
        # snapshot.
        "Runtime.evaluate": 5,
        "mouseClick": 1,
        "mouseMove": 1,
        "Fetch.failRequest": 1,
        "goto": 1,
        "Fetch.continueRequest": 1,
        "Fetch.continueResponse": 1,
        "cookies": 2,
        "Page.captureScreenshot": 1,
    }
