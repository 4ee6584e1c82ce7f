"""A sign of waiting that stays in two documents is part of the site's design, unless it went away somewhere."""

from waygraph.pipeline.browser.page.waits import WaitMemory


def test_a_sign_that_stayed_in_two_documents_is_waited_for_no_longer():
    waits = WaitMemory()
    waits.note(["spinner div.logo"], [])
    assert waits.lasting == []
    waits.note(["spinner div.logo", "text p"], [])
    assert waits.lasting == ["spinner div.logo"]


def test_a_sign_that_went_away_once_is_always_waited_for():
    waits = WaitMemory()
    waits.note([], ["text p"])
    for _ in range(3):
        waits.note(["text p"], [])
    assert waits.lasting == []
    late = WaitMemory()
    for _ in range(3):
        late.note(["text p"], [])
    late.note([], ["text p"])
    assert late.lasting == []
