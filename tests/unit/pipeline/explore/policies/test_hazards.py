"""The lexicon of hazards: a table of names, URLs and attributes that are refused, and of some that are not."""

import re
from pathlib import Path

import pytest
import yaml

from waygraph.index.graph import Action, Box
from waygraph.pipeline.browser.page.snapshot import Candidate, Snapshot
from waygraph.pipeline.explore.policies.blocklist import BlockList, ElementRule
from waygraph.pipeline.explore.policies.forms import FormPolicy
from waygraph.pipeline.explore.policies.hazard import HazardPolicy
from waygraph.pipeline.explore.policies.hazard_urls import hazard_in_url, state_changing_globs
from waygraph.pipeline.explore.policies.lexicon import fold, lexicon, words

HERE = Snapshot("id", "http://x/", "http://x/", "", "text/html", 200, (), (), (), capped=False, opened=0)


def refusal(name="", role="button", target="", *, kind="click", value="", submits="", **details):
    action = Action(kind, role=role, name=name, target=target, value=value)
    element = Candidate(action, "a", disabled=False, submits=submits, download=False, box=Box(0, 0, 1, 1), **details)
    return HazardPolicy().refuse(element, HERE)


def is_pressed(name="", role="button", target="", *, submits="", handler="", mode="press"):
    action = Action("click", role=role, name=name, target=target)
    element = Candidate(
        action, "a", disabled=False, submits=submits, download=False, box=Box(0, 0, 1, 1), handler=handler
    )
    policy = HazardPolicy(mode=mode)
    refused = policy.refuse(element, HERE) or FormPolicy(mode=mode).refuse(element, HERE)
    assert not (refused and policy.is_pressed(element, HERE))
    return policy.is_pressed(element, HERE)


KNOWN = yaml.safe_load(Path(__file__).with_name("hazard_words.yaml").read_text(encoding="utf-8"))


def names_of(part):
    return [name for names in KNOWN[part].values() for name in names]


@pytest.mark.parametrize("name", names_of("acts"))
def test_names_that_change_data_are_refused_on_links_and_buttons(name):
    for role, target in (("button", ""), ("link", "http://x/y"), ("link", "http://x/#"), ("menuitem", "")):
        found = refusal(name, role, target)
        assert found is not None
        assert found.reason == "hazard"
        assert found.rule.startswith("hazards.yaml: ")


@pytest.mark.parametrize("name", names_of("acts_of_buttons"))
def test_some_names_are_refused_on_buttons_and_followed_on_links(name):
    assert refusal(name, "button") is not None
    assert refusal(name, "menuitem") is not None
    assert refusal(name, "link", "http://x/#") is not None, "a link without an address of its own is a button"
    assert refusal(name, "link", "http://x/y") is None
    assert refusal(name, "tab") is None


@pytest.mark.parametrize("name", KNOWN["links_that_show"])
def test_names_of_links_that_show_something_are_followed(name):
    assert refusal(name, "link", "http://x/y") is None


@pytest.mark.parametrize("name", KNOWN["buttons_that_show"])
def test_names_of_buttons_that_show_something_are_pressed(name):
    assert refusal(name, "button") is None


@pytest.mark.parametrize("name", ["Log out?", "Sign out now?", "Unsubscribe?", "Abmelden?", "退出登录?"])
def test_a_short_name_with_a_question_mark_is_refused(name):
    assert refusal(name, "link", "http://x/session/end-me") is not None
    assert refusal(name, "button") is not None


@pytest.mark.parametrize("name", ["How do I log out?", "Wie lösche ich mein Konto?", "退会した後はどうなりますか?"])
def test_links_with_questions_as_names_are_followed(name):
    assert refusal(name, "link", "http://x/session/end-me") is None


@pytest.mark.parametrize(
    "name", ["Delete", "Delete a customer", "Cancel subscription", "Send", "Log out of all devices"]
)
def test_titles_of_articles_are_followed(name):
    assert refusal(name, "link", "http://x/docs/billing/overview") is None
    assert refusal(name, "link", "http://x/help/a") is None


@pytest.mark.parametrize("name", ["purge()", "window.erase()", "Delete a branch"])
def test_links_to_an_anchor_of_another_page_are_followed(name):
    """Entries of an index, headings in a table of contents."""
    assert refusal(name, "link", "http://x/library/re.html#re.purge") is None
    assert refusal(name, "link", "http://x/#re.purge") is not None, "a place in this page may be a script's"
    assert refusal(name, "link", "http://x/app#/purge") is not None, "a route"
    assert refusal(name, "link", "http://x/account/delete#re.purge") is not None


def test_a_column_called_order_can_be_sorted_by():
    assert refusal("Order: Activate to sort") is None


def test_a_link_to_log_out_is_refused_also_below_articles():
    assert refusal("Log out", "link", "http://x/docs/session") is not None


@pytest.mark.parametrize("group", sorted({entry.group for entry in lexicon().spaced.values()}))
def test_every_group_has_words_in_more_than_ten_languages(group):
    spaced = {language for entry in lexicon().spaced.values() if entry.group == group for language in entry.languages}
    assert len(spaced) >= 20


@pytest.mark.parametrize("path", KNOWN["addresses_that_act"] + KNOWN["addresses_of_documents_that_act"])
def test_urls_that_change_data_are_refused(path):
    assert hazard_in_url(f"https://shop.example{path}") is not None
    assert refusal("Innocent", "link", f"http://x{path}") is not None
    assert HazardPolicy().refuse_url(f"http://x{path}").reason == "hazard"


def globbed(path):
    url = f"https://shop.example{path}"
    patterns = (re.escape(glob).replace(r"\*", ".*").replace(r"\?", ".") for glob in state_changing_globs())
    return any(re.fullmatch(pattern, url) for pattern in patterns)


def test_globs_match_most_urls_that_change_data():
    acting = [path for path in KNOWN["addresses_that_act"] if "#" not in path]
    missed = {path for path in acting if not globbed(path)}
    assert missed <= {
        "/?op=del&x=2", "/?cmd=rm", "/%6Cogout", "/vote?id=5&how=up", "/users/12/ban", "/invoice/5/pay",
        "/invoices/pay?id=5", "/orders/5/ship", "/jobs/5/kill", "/relay/1/off", "/admin?cmd=reboot",
        "/hide?id=5&goto=news", "/vm?op=stop", "/power.cgi?action=restart", "/x?do=mark_all_read",
    }  # fmt: skip
    assert len(state_changing_globs()) < 150, "each costs a little with each request"


@pytest.mark.parametrize("path", ["/static/app.js", "/img/chair.png", "/blog/about/hair.webp", "/burger/surgery.svg",
                                  "/marketing/hero.jpg", "/fonts/sun.woff2", "/api/items?page=2"])  # fmt: skip
def test_globs_match_no_other_parts_of_pages(path):
    assert not globbed(path)


@pytest.mark.parametrize("path", ["/icons/delete.svg", "/js/logout.js?v=3", "/delete/button.png", "/logout.css"])
def test_resources_of_pages_are_harmless_for_any_name(path):
    assert hazard_in_url(f"https://shop.example{path}") is None
    assert hazard_in_url(f"https://shop.example{path.partition('?')[0]}?action=delete") is not None


@pytest.mark.parametrize("path", ["/flag/5", "/world/star/17", "/pin/8", "/like/3/"])
def test_an_item_of_a_collection_is_followed_by_agents_and_not_by_explorers(path):
    url = f"http://x{path}"
    assert HazardPolicy().refuse_url(url).reason == "hazard"
    assert HazardPolicy(follows_items=True).refuse_url(url) is None


@pytest.mark.parametrize(
    "path",
    ["/flag/5?how=up", "/messages/5/flag", "/messages/5/flag/7", "/flag?id=5", "/vote/17", "/lock/5", "/star/5/delete",
     "/flag/delete/5", "/pin/5#/logout", *KNOWN["addresses_that_act"]],
)  # fmt: skip
def test_agents_follow_no_address_that_acts_on_an_item(path):
    assert HazardPolicy(follows_items=True).refuse_url(f"https://shop.example{path}") is not None


@pytest.mark.parametrize(
    "path",
    ["/docs/feature-flags", "/feature-flags", "/flags/5", "/c/pin-headers", "/c/pin-headers/12", "/pins/5",
     "/rest/v1/star-systems", "/rest/v1/star-systems?id=5", "/five-star", "/watch?v=5", "/watch-faces/5", "/like-new/5",
     "/stars", "/country-flags/12"],
)  # fmt: skip
def test_words_of_collections_are_followed_by_everybody(path):
    assert hazard_in_url(f"https://shop.example{path}") is None


@pytest.mark.parametrize("path", KNOWN["addresses_that_show"])
def test_urls_that_show_something_are_followed(path):
    assert hazard_in_url(f"https://shop.example{path}") is None


@pytest.mark.parametrize("method", ["delete", "DELETE", "post", "put", "patch"])
def test_a_link_with_a_method_attribute_is_refused(method):
    assert refusal("Details", "link", "http://x/y", method=method).reason == "hazard"


def test_a_link_with_get_as_its_method_attribute_is_followed():
    assert refusal("Details", "link", "http://x/y", method="get") is None


@pytest.mark.parametrize(
    "handler",
    [
        "deleteUser(5)",
        "return confirm('Sure?') && destroy(3)",
        "cart.addToCart(7)",
        "delete(12)",
        "app.logout()",
        "signOut()",
        "click->items#delete",
        "purchase",
        "doBuyNow()",
    ],
)
def test_a_button_whose_handler_changes_data_is_refused(handler):
    assert refusal("More", handler=handler).reason == "hazard"


@pytest.mark.parametrize(
    "handler",
    [
        "toggleMenu()",
        "this.parentElement.remove()",
        "click->dropdown#toggle",
        "open = !open",
        "loadMore(2)",
        "undelete_x",
    ],
)
def test_a_button_whose_handler_shows_something_is_pressed(handler):
    assert refusal("More", handler=handler) is None


def test_an_option_is_refused_by_its_own_name():
    assert refusal("Action", "combobox", kind="select", value="Delete my account")
    assert not refusal("Sort", "combobox", kind="select", value="Newest first")


@pytest.mark.parametrize(
    "icon", ["fa fa-trash", "icon-delete", "bi bi-trash3 trash", "mdi mdi-logout", "btn #icon-remove", "Delete fa"]
)
def test_an_icon_without_a_name_is_refused_by_its_classes(icon):
    assert refusal("", icon=icon).reason == "hazard"
    assert refusal("Trash can collection dates", "link", "http://x/y", icon=icon) is None


@pytest.mark.parametrize(
    ("name", "icon"), [("", "fa fa-bars"), ("", "icon-close"), ("\u00d7", "btn-close"), ("⋮", "kebab menu")]
)
def test_icons_that_show_something_are_pressed(name, icon):
    assert refusal(name, icon=icon) is None


def test_a_waste_basket_symbol_is_refused():
    assert refusal("🗑").reason == "hazard"
    assert refusal("🗑️", icon="x").reason == "hazard"


def test_a_link_that_runs_a_script_is_refused_by_the_script():
    assert refusal("More", "link", "javascript:deleteItem(4)").reason == "hazard"
    assert refusal("More", "link", "javascript:void(0)") is None
    assert refusal("Send", "link", "javascript:void(0)").reason == "hazard"


def test_hovering_and_loading_press_nothing():
    assert refusal("Delete", kind="hover") is None


def test_submit_buttons_are_refused_and_a_get_form_may_be_allowed():
    def button(submits):
        action = Action("click", role="button", name="Go")
        return Candidate(action, "button", disabled=False, submits=submits, download=False, box=Box(0, 0, 1, 1))

    assert FormPolicy().refuse(button("get"), HERE).reason == "form_get"
    rules = BlockList(allow=(ElementRule(name="go", text="go"),))
    assert FormPolicy(rules).refuse(button("get"), HERE) is None
    assert FormPolicy(rules).refuse(button("post"), HERE).reason == "form_post"


def test_folding_removes_case_and_accents_only():
    assert fold("SUPPRIMÉ") == fold("supprime") == "supprime"
    assert fold("\u0131") == "i"
    assert fold("ガギ") == "ガギ"
    assert words("Log-out, (now)!") == ("log", "out", "now")


# ---- buttons that are pressed behind the guard -----------------------------------------------------------------------


def test_generic_phrases_are_phrases_of_buttons():
    lex = lexicon()
    buttons = {" ".join(phrase) for phrase, entry in lex.spaced.items() if entry.at == "buttons"}
    buttons |= {phrase for phrase, entry in lex.unspaced.items() if entry.at == "buttons"}
    assert len(lex.generic) > 80
    assert lex.generic <= buttons


@pytest.mark.parametrize(
    "name", ["Save", "Submit request", "Speichern", "Nachricht senden", "送信", "저장", "Upload a file"]
)
def test_buttons_with_generic_names_are_pressed(name):
    assert is_pressed(name)
    assert not is_pressed(name, mode="skip")


@pytest.mark.parametrize(
    "name",
    ["Delete", "Save and delete", "Submit order", "Buy", "Restart", "Log out", "Send and unsubscribe", "保存して削除"],
)
def test_buttons_whose_names_say_more_are_not(name):
    assert not is_pressed(name)
    assert not is_pressed(name, submits="post")


def test_what_the_handler_or_the_address_says_counts_for_generic_names_too():
    assert not is_pressed("Save", handler="deleteUser(5)")
    assert not is_pressed("Save", target="http://x/posts/5/delete", role="link")


def test_submit_buttons_of_post_forms_are_pressed_and_those_of_get_forms_are_not():
    assert is_pressed("Go", submits="post")
    assert not is_pressed("Go", submits="post", mode="skip")
    assert not is_pressed("Go")  # it is acted on like every element


def test_elements_that_the_user_allows_are_acted_on_without_restrictions(tmp_path):
    file = tmp_path / "rules.yaml"
    file.write_text("sites:\n  - host: x\n    allow:\n      - {name: saving, text: '^Save$'}\n")
    policy = HazardPolicy(BlockList.read(file, "x"), "press")
    action = Action("click", role="button", name="Save")
    element = Candidate(action, "a", disabled=False, submits="", download=False, box=Box(0, 0, 1, 1))
    assert policy.refuse(element, HERE) is None
    assert not policy.is_pressed(element, HERE)


@pytest.mark.parametrize("url", ["https://shop.example//[category]?page=2", "http://shop.example//[x?a=1"])
def test_addresses_that_only_browsers_can_read_are_judged_without_an_error(url):
    assert hazard_in_url(url) is None


@pytest.mark.parametrize("url", ["http://docs.shop.example/install/upgrade", "http://shop.example/subscribe/2024"])
def test_pages_that_tell_how_are_no_hazards(url):
    assert hazard_in_url(url) is None
