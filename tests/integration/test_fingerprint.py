"""The fingerprint script, for callers without the SDK, computes the same structure as a snapshot of the SDK."""

import pytest

from tests.browsers import BROWSERS, LOOPBACK_ONLY, shared_browser
from tests.sites.server import FixtureServer
from waygraph.core.settings import ExploreSettings
from waygraph.core.urls import normalize_url
from waygraph.demo_site import DemoSite
from waygraph.index.graph import node_id
from waygraph.pipeline.browser.page.fingerprint import fingerprint_script
from waygraph.pipeline.browser.page.snapshot import SnapshotOptions
from waygraph.pipeline.browser.page.view import PageView

PLAIN = "<h1>Tea</h1><p hidden>unseen</p><ul>" + "<li><a href='/x'>one</a></li>" * 40 + "</ul>"
SHADOW = """<div id=host></div><article-ü>unicode names</article-ü><script>
  document.getElementById("host").attachShadow({mode: "open"}).innerHTML = "<button>inside</button><p>text</p>";
</script>"""
FRAMES = (
    "<h1>Outside</h1><iframe src='/inner'></iframe><iframe srcdoc='<p>deep</p><iframe src=/inner></iframe>'></iframe>"
)
DIALOG = "<p>behind</p><dialog id=d><button>Close</button></dialog><script>d.showModal()</script>"
LATE = "<p>early</p><script>setTimeout(() => document.body.append(document.createElement('b')), 400)</script>"


def both(url):
    """Return the result of the script on a page, and the snapshot of the SDK."""

    async def run():
        async with shared_browser() as browser:
            told = await browser.new_page()
            await told.goto(url)
            answer = await told.evaluate(fingerprint_script())
            again = await told.evaluate(fingerprint_script())
            assert answer == again
            seen = await browser.new_page()
            await seen.goto(url)
            view = PageView(
                seen, SnapshotOptions.from_settings(LOOPBACK_ONLY, ExploreSettings()), LOOPBACK_ONLY, owned=False
            )
            return answer, await view.observe()

    return BROWSERS.run(run())


@pytest.mark.parametrize(
    "html", [PLAIN, SHADOW, FRAMES, DIALOG, LATE], ids=["plain", "shadow", "frames", "dialog", "late"]
)
def test_structure_and_url_equal_those_of_a_snapshot(html):
    with FixtureServer({"/": f"<!doctype html>{html}", "/inner": "<!doctype html><button>inner</button>"}) as site:
        answer, seen = both(site.url)
    assert answer["url"] == seen.raw_url
    assert answer["structure"] == list(seen.structure)
    assert node_id(answer["structure"], normalize_url(answer["url"])) == seen.id
    assert len(seen.structure) > 1


def test_a_page_of_the_demo_shop_is_located_exactly():
    with DemoSite() as site:
        answer, seen = both(f"{site.url}/admin/settings".replace("//admin", "/admin"))
    assert answer["structure"] == list(seen.structure)
    assert len(answer["structure"]) > 50
