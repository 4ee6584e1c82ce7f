"""The three grammars of actions, and what models write instead."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waygraph.agents.actions.brackets import describe_actions, parse_brackets
from waygraph.agents.actions.calls import parse_call
from waygraph.agents.actions.tool_calls import parse_tool_call, tool_schemas
from waygraph.agents.actions.types import (
    ACTION_TYPES,
    ActionSyntaxError,
    BranchAction,
    ClickAction,
    CloseTabAction,
    FocusTabAction,
    GoBackAction,
    GotoAction,
    NavigateAction,
    NewTabAction,
    NoteAction,
    PressAction,
    PruneAction,
    ScrollAction,
    SelectAction,
    StopAction,
    TypeAction,
    UseToolAction,
)

INPUTS = '{"words": ["a", "b"]}'


@pytest.mark.parametrize(
    ("written", "action"),
    [
        ("click [12]", ClickAction(element="12")),
        ("```click [12]```", ClickAction(element="12")),
        ("```text\nclick [12]\n```", ClickAction(element="12")),
        ("Action: click [12]", ClickAction(element="12")),
        ("type [5] [blue lamp] [1]", TypeAction(element="5", text="blue lamp", press_enter=True)),
        ("type [5] [blue lamp] [press_enter_after=0]", TypeAction(element="5", text="blue lamp")),
        ("type [5] [blue lamp]", TypeAction(element="5", text="blue lamp", press_enter=True)),
        ("type [5] [1]", TypeAction(element="5", text="1", press_enter=True)),
        ("type [5] [a [b] c] [0]", TypeAction(element="5", text="a [b] c")),
        ("type [5] [two\nlines] [0]", TypeAction(element="5", text="two\nlines")),
        ("fill [5] []", TypeAction(element="5", text="")),
        ("select [3] [Extra large [XL]]", SelectAction(element="3", option="Extra large [XL]")),
        ("press [ctrl+a]", PressAction(key="Control+a")),
        ("press [7] [Enter]", PressAction(key="Enter", element="7")),
        ("scroll [direction=down]", ScrollAction(direction="down")),
        ("goto [example.com/a]", GotoAction(url="https://example.com/a")),
        ("go_back", GoBackAction()),
        ("go_back []", GoBackAction()),
        ("new_tab", NewTabAction()),
        ("page_focus [1]", FocusTabAction(tab=1)),
        ("page_close", CloseTabAction()),
        ("note [a [1]]", NoteAction(text="a [1]")),
        ('use_tool [shop] [find] [{"words": ["a", "b"]}]', UseToolAction(site="shop", tool="find", arguments=INPUTS)),
        ("stop", StopAction()),
        ("stop [N/A]", StopAction(answer="N/A")),
        ("branch [0] [find the order]", BranchAction(plan="0", intent="find the order")),
        ("prune [2] [no such page]", PruneAction(plan="2", reason="no such page")),
        ("navigate [shop.example] [the cart]", NavigateAction(site="shop.example", query="the cart")),
        (
            "optimal_navigate [I need it][shop.example][the cart]",
            NavigateAction(site="shop.example", query="the cart", thinking="I need it"),
        ),
    ],
)
def test_bracket_grammar(written, action):
    assert parse_brackets(written) == action


@pytest.mark.parametrize(
    ("written", "action"),
    [
        ("click 12", ClickAction(element="12")),
        ("type 5 blue lamp", TypeAction(element="5", text="blue lamp", press_enter=True)),
        ("type 5 [blue lamp] [0]", TypeAction(element="5", text="blue lamp")),
        ("press Enter", PressAction(key="Enter")),
        ("scroll down", ScrollAction(direction="down")),
        ("note blue lamp: 9 EUR", NoteAction(text="blue lamp: 9 EUR")),
        ("stop 42", StopAction(answer="42")),
        ("navigate shop.example the cart", NavigateAction(site="shop.example", query="the cart")),
        ("navigate [shop.example] the cart", NavigateAction(site="shop.example", query="the cart")),
        ("navigate: shop.example the cart", NavigateAction(site="shop.example", query="the cart")),
        ('stop "42"', StopAction(answer="42")),
        ("Stop: done", StopAction(answer="done")),
    ],
)
def test_brackets_may_be_left_out(written, action):
    assert parse_brackets(written) == action


@pytest.mark.parametrize(
    ("written", "action"),
    [
        ("click('12')", ClickAction(element="12")),
        ("click(12, button='right')", ClickAction(element="12", button="right")),
        ("dblclick('12')", ClickAction(element="12", double=True)),
        ("fill('5', 'a\\nb', press_enter_after=True)", TypeAction(element="5", text="a\nb", press_enter=True)),
        ("fill(bid='5', value='x')", TypeAction(element="5", text="x")),
        ("clear('5')", TypeAction(element="5", text="")),
        ("select_option('3', ['Blue'])", SelectAction(element="3", option="Blue")),
        ("press('7', 'Enter')", PressAction(key="Enter", element="7")),
        ("keyboard_press('Escape')", PressAction(key="Escape")),
        ("scroll(0, -200)", ScrollAction(direction="up")),
        ("scroll('down')", ScrollAction(direction="down")),
        ("tab_focus(1)", FocusTabAction(tab=1)),
        ("tab_close()", CloseTabAction()),
        ("send_msg_to_user(text='42')", StopAction(answer="42")),
        ("navigate('shop.example', 'the cart')", NavigateAction(site="shop.example", query="the cart")),
        ("```python\ngo_back()\n```", GoBackAction()),
    ],
)  # fmt: skip
def test_call_grammar(written, action):
    assert parse_call(written) == action


@pytest.mark.parametrize(
    "call",
    [
        {"name": "type", "arguments": '{"element": "5", "text": "x", "press_enter": true}'},
        {
            "type": "function",
            "function": {"name": "type", "arguments": {"element": 5, "text": "x", "press_enter": "1"}},
        },
        {"type": "tool_use", "name": "type", "input": {"element": "[5]", "text": "x", "press_enter": True}},
        '{"action": "type", "element": "5", "text": "x", "press_enter": true}',
    ],
)
def test_tool_calls(call):
    assert parse_tool_call(call) == TypeAction(element="5", text="x", press_enter=True)


@pytest.mark.parametrize(
    ("parse", "written", "says"),
    [
        (parse_brackets, "", "There is no action; write one such as click [12] or stop [answer]."),
        (parse_brackets, "click [12", "The action click cannot be read: write click [id]."),
        (parse_brackets, "click 1\nclick 2", "Write click [id] and nothing else; only one action can be done"),
        (parse_brackets, "click the button [12]", "Write click [id] and nothing else; only one action can be done"),
        (parse_brackets, "answer is 42", "The action stop cannot be read: write stop [answer]."),
        (parse_brackets, "accept the cookies", "The action accept cannot be read: write accept"),
        (parse_brackets, "new_tab because", "The action new_tab cannot be read: write new_tab"),
        (parse_brackets, "stop - the price is 3", "The action stop cannot be read: write stop [answer] and nothing"),
        (parse_brackets, "type 5 hello 0", "The action type cannot be read: write type [id] [text]"),
        (parse_brackets, "type 5 press_enter_after=0", "The action type cannot be read: write type [id] [text]"),
        (parse_brackets, "stop [42] because", "The action stop cannot be read: write stop [answer] and nothing else."),
        (parse_brackets, "click [x]", "'x' is not the id of an element, which is a number such as 12: write click"),
        (parse_brackets, "click [1]\nclick [2]", "Write click [id] and nothing else; only one action can be done"),
        (parse_brackets, "go_back [1]", "The action go_back takes no value, and only one action can be done"),
        (parse_brackets, "jump [1]", "'jump' is not an available action; the actions are click, type,"),
        (parse_brackets, "goto [file:///etc/passwd]", "is not an address; only http and https pages can be loaded"),
        (parse_brackets, "press [Hyper]", "'Hyper' is not a key"),
        (parse_brackets, "note []", "string should have at least 1 character: write note [text]."),
        (parse_call, "os.system('x')", "That is no function call; write one such as click('12') or stop('answer')."),
        (parse_call, "click(open('x'))", "The values of click must be plain strings, numbers, True or False."),
        (parse_call, "click('1'); click('2')", "Only one action can be done at a time; write one function call."),
        (parse_call, "click(1, 'left', 3)", "click takes at most 2 values, and was given 3: click(element, button)."),
        (parse_call, "click()", "The action click needs a value for 'element': write click [id]."),
        (parse_call, "click('1', force=True)", "The action click has no 'force': write click [id]."),
        (parse_tool_call, "{", "The tool call must be a JSON object."),
        (parse_tool_call, {"arguments": {}}, "The tool call has no name of an action."),
        (parse_tool_call, {"name": "click", "arguments": "[1]"}, "The arguments of click must be a JSON object."),
    ],
)  # fmt: skip
def test_malformed_actions_are_one_sentence(parse, written, says):
    with pytest.raises(ActionSyntaxError) as caught:
        parse(written)
    assert says in caught.value.message
    assert caught.value.message.endswith(".")
    assert "\n" not in caught.value.message


def test_actions_that_are_not_allowed_are_not_available():
    with pytest.raises(ActionSyntaxError, match="'goto' is not an available action; the actions are click, stop"):
        parse_brackets("goto [http://a.example/]", {"click", "stop"})
    assert parse_call("click(1)", {"click"}) == ClickAction(element="1")


def test_every_action_has_a_usage_that_parses_and_a_line_in_the_prompt():
    lines = describe_actions().splitlines()
    assert len(lines) == len(ACTION_TYPES)
    for name, kind in ACTION_TYPES.items():
        values = {
            "id": "1",
            "text": "x",
            "press_enter: 0 or 1": "1",
            "up or down": "up",
            "url": "http://a.example/",
            "number": "0",
        }
        written = kind.usage.replace("[key]", "[Enter]")
        for slot, value in values.items():
            written = written.replace(f"[{slot}]", f"[{value}]")
        assert parse_brackets(written).action == name


@pytest.mark.parametrize("style", ["openai", "anthropic"])
def test_schemas_are_made_from_the_types(style):
    tools = tool_schemas(style=style)
    definitions = [tool["function"] if style == "openai" else tool for tool in tools]
    assert [each["name"] for each in definitions] == list(ACTION_TYPES)
    parameters = {each["name"]: each["parameters" if style == "openai" else "input_schema"] for each in definitions}
    assert parameters["type"]["required"] == ["element", "text"]
    assert set(parameters["type"]["properties"]) == {"element", "text", "press_enter"}
    assert "$ref" not in json.dumps(tools)
    assert all(each["description"] for each in definitions)
    assert [t["name"] for t in tool_schemas({"click"}, style="anthropic")] == ["click"]


PIECES = st.sampled_from([
    "click", "type", "stop", "note", "press", "scroll", "navigate", "optimal_navigate", "goto", " ", "[", "]", "[1]",
    "(", ")",
    "'", '"', ",", "1", "\n", "```", "lambda", "*", "**", "{", "}", "\x00", "\ud800", "=", "element",
])  # fmt: skip


def attempt(parse, written):
    """Return the action, or the error that it is none."""
    try:
        return parse(written)
    except ActionSyntaxError as error:
        return error


WRITTEN = st.text(max_size=40) | st.lists(PIECES, max_size=12).map("".join)


@given(WRITTEN)
def test_whatever_a_model_writes_is_an_action_or_a_syntax_error(written):
    for parse in (parse_brackets, parse_call, parse_tool_call):
        parsed = attempt(parse, written)
        assert type(parsed) in ACTION_TYPES.values() or len(parsed.message) < 500


SHORT = st.text(max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | SHORT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SHORT, inner, max_size=3),
)


@given(
    st.sampled_from(list(ACTION_TYPES)),
    st.dictionaries(st.sampled_from(["element", "text", "key", "url", "tab", "x"]), JSON),
)
def test_any_arguments_of_a_tool_are_an_action_or_a_syntax_error(name, arguments):
    parsed = attempt(parse_tool_call, {"name": name, "arguments": arguments})
    assert type(parsed) is ACTION_TYPES[name] or parsed.message.endswith(".")


@given(st.integers(1, 999), st.text(max_size=40), st.booleans())
def test_what_is_typed_survives_every_grammar(element, text, enter):
    if any("\ud800" <= character <= "\udfff" for character in text):
        return
    action = TypeAction(element=str(element), text=text, press_enter=enter)
    assert parse_call(f"fill({element!r}, {text!r}, {enter})") == action
    assert (
        parse_tool_call(
            {"name": "type", "arguments": json.dumps({"element": element, "text": text, "press_enter": enter})}
        )
        == action
    )
    assert parse_brackets(f"type [{element}] [{text}] [{int(enter)}]") == action
