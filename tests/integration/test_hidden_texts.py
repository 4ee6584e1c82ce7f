"""Texts that are shown when they are opened or found: what a snapshot says of them, and how a search finds them."""

from dataclasses import replace

from tests.integration.test_page_script import act, look
from waygraph.index.graph import HIDDEN_ROLE, Box
from waygraph.pipeline.browser.page.features import features


def hidden(snapshot):
    return [segment.text for segment in snapshot.hidden]


def texts(snapshot):
    return [segment.text for segment in snapshot.segments]


def test_closed_details_and_until_found_are_hidden_texts_by_block():
    seen = look(
        """<title>t</title><details><summary>Terms</summary>Bare text <b>in bold</b><p>One <i>two</i></p>
        <ul><li>Three<li>Four</ul><details><summary>Inner</summary>Five</details></details>
        <div hidden=until-found>Six<p>Seven</p></div><p>Eight"""
    )
    assert texts(seen) == ["Terms", "Eight"]
    assert hidden(seen) == ["Bare text in bold", "One two", "Three", "Four", "Inner", "Five", "Six", "Seven"]
    assert {segment.role for segment in seen.hidden} == {HIDDEN_ROLE}


def test_a_hidden_text_is_where_its_closed_element_is():
    seen = look("<title>t</title><style>details { height: 20px }</style><details><summary>S</summary>T</details>")
    assert [segment.box for segment in seen.hidden] == [Box(8, 8, 1264, 20)]


def test_what_search_in_the_page_does_not_find_is_no_hidden_text():
    seen = look(
        """<title>t</title><div hidden>A</div><div style="content-visibility: hidden">B</div>
        <details><summary>S</summary><p hidden>C</p><p aria-hidden=true>F</p><p inert>G</p>
        <p style="visibility: hidden">D<b style="visibility: visible">E</b></p>
        <div style="content-visibility: hidden">H</div><script>I</script></details>
        <div hidden=until-found style="content-visibility: visible">J</div>
        <section hidden><details><summary>K</summary>L</details></section>"""
    )
    assert hidden(seen) == ["E"]
    assert texts(seen) == ["S", "J"]


def test_hidden_texts_in_shadow_roots_frames_and_slots_are_read_and_those_behind_a_dialog_are_not():
    seen = look(
        """<title>t</title><x-a><template shadowrootmode=open><details><summary>S</summary><p>A</p><slot></slot>
        </details></template>B</x-a>
        <iframe srcdoc="<details><summary>T</summary>C</details>"></iframe>"""
    )
    assert hidden(seen) == ["A", "B", "C"]
    seen = look(
        """<title>t</title><details><summary>S</summary>A</details><dialog>D</dialog>
        <script>document.querySelector('dialog').showModal()</script>"""
    )
    assert (texts(seen), hidden(seen)) == (["D"], [])


def test_opening_shows_the_texts_and_hidden_ones_identify_nothing():
    first, (opened,), _, _ = act("<title>t</title><details><summary>S</summary><p>Text of it</p></details>", "S")
    assert (hidden(first), hidden(opened.snapshot)) == (["Text of it"], [])
    assert texts(opened.snapshot) == ["S", "Text of it"]
    assert features(first) == features(replace(first, hidden=()))
