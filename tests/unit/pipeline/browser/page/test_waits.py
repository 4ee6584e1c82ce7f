"""A sign of waiting that stays in two documents is part of the site's design, unless it went away somewhere."""

from waygraph.pipeline.browser.page.waits import WaitMemory


def test_a_sign_that_stayed_in_two_documents_is_waited_for_no_longer():
    waits = WaitMemory()
    for _ in range(2):  # one page that never gets ready, loaded twice
        waits.note("http://x.example/slow", ["spinner div.logo"], [])
    assert waits.lasting == []
    waits.note("http://x.example/other", ["spinner div.logo", "text p"], [])
    assert waits.lasting == ["spinner div.logo"]


def test_a_sign_that_went_away_once_is_always_waited_for():
    waits = WaitMemory()
    waits.note("http://x.example/0", [], ["text p"])
    for number in range(3):
        waits.note(f"http://x.example/{number}", ["text p"], [])
    assert waits.lasting == []
