"""A BrowserGym action that walks the agent's page to "the page where ...": `navigate("where the address is changed")`.

BrowserGym copies the source text of its actions into the program that it runs for each of the agent's steps. So the
function uses no name of this module except `page`, which that program defines, and imports what it needs.

    from browsergym.core.action.highlevel import HighLevelActionSet
    from browsergym_navigate import navigate

    actions = HighLevelActionSet(subsets=["custom", "bid", "nav"], custom_actions=[navigate])

WAYGRAPH_URL is the URL of the service (default: http://127.0.0.1:8321), WAYGRAPH_API_KEY its key. The agent's next
observation is the page that it reached; errors are raised, and BrowserGym shows them to the agent as
`last_action_error`. A walk that fails stops on the page that it reached.

browsergym-core pins an old Playwright. waygraph does not have to be installed where BrowserGym runs, so their versions
cannot conflict.
"""

page = None  # the agent's page in BrowserGym's program


def navigate(query: str):
    """
    Go to a page of the current website that is described in plain words, in one step. The website was mapped before, so
    this also finds pages behind menus, tabs and dialogs. Describe what the page shows or is for.

    Examples:
        navigate("where can I change my delivery address?")

        navigate("the list of open invoices")
    """
    import json
    import os
    import urllib.error
    import urllib.parse
    import urllib.request

    service = os.environ.get("WAYGRAPH_URL", "http://127.0.0.1:8321").rstrip("/")
    headers = {"Content-Type": "application/json"}
    if os.environ.get("WAYGRAPH_API_KEY"):
        headers["Authorization"] = "Bearer " + os.environ["WAYGRAPH_API_KEY"]

    # 1. Request the page that matches the query, and the path from the current page.
    site = urllib.parse.urlsplit(page.url).netloc.rpartition("@")[2]
    body = {"site": site, "query": query, "current": {"url": page.url}}
    request = urllib.request.Request(service + "/v1/navigate", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            found = json.load(response)
    except urllib.error.HTTPError as error:
        text = error.read().decode("utf-8", "replace")
        try:
            problem = json.loads(text)
            text = problem["detail"] + " " + problem.get("hint", "")
        except (ValueError, KeyError, TypeError):
            text = "The map service answered " + str(error.code) + "."
        raise ValueError("navigate: " + text) from None
    except OSError as error:
        raise ValueError("navigate: the map service cannot be reached: " + str(error)) from None
    if found["path"] is None:
        raise ValueError("navigate: " + " ".join([found["reason"], *found["notes"]]))

    # 2. Walk the path. Only recorded elements are activated.
    def is_at(url, expected):
        here, there = urllib.parse.urlsplit(url), urllib.parse.urlsplit(expected)
        return (here.netloc, here.path.rstrip("/")) == (there.netloc, there.path.rstrip("/"))

    tab = page
    steps = found["path"]["steps"]
    for number, step in enumerate(steps, start=1):
        action = step["action"]
        kind, role, name, value = action["kind"], action["role"], action["name"], action["value"]
        at = f"step {number} of {len(steps)} ({kind} {role} {name!r} {action['url']})"
        try:
            if kind == "goto":
                tab.goto(action["url"], wait_until="domcontentloaded")
            else:
                scope = tab
                for frame in action["frame"]:
                    scope = scope.frame_locator("xpath=" + frame)
                if " ~~~ " in action["xpath"]:  # a row that its list renders only when it is scrolled into view
                    box, _, rest = action["xpath"].partition(" ~~~ ")
                    top = float(rest.partition("/")[0])
                    scope.locator("xpath=" + box).evaluate("(box, top) => box.scrollTo(0, top)", top)
                    element = scope.get_by_role(role, name=name, exact=True).first
                elif role and name:
                    element = scope.get_by_role(role, name=name, exact=True).nth(action["nth"])
                else:
                    element = scope.locator(action["css"] or "xpath=" + action["xpath"])
                element.wait_for(timeout=5_000)

                def act(element=element, kind=kind, value=value):
                    if kind in ("input", "submit"):
                        element.fill(value)
                        if kind == "submit":
                            element.press("Enter")
                    elif kind == "press":
                        element.press(value)
                    elif kind == "select":
                        element.select_option(value)
                    elif kind == "contextmenu":
                        element.click(button="right")
                    else:  # Playwright has these under the same names: click, dblclick, hover, focus
                        getattr(element, kind)()
                        if value == "away":
                            element.page.mouse.move(0, 0) if kind == "hover" else element.blur()

                if step["opens_tab"]:
                    with tab.expect_popup() as opened:
                        act()
                    tab = opened.value
                else:
                    act()
            tab.wait_for_url(
                lambda url, expected=step["expected_url"]: is_at(url, expected),
                wait_until="domcontentloaded",
                timeout=5_000,
            )
        except Exception as error:
            reason = str(error).splitlines()[0]
            raise ValueError(
                f"navigate: {at} did not work, the website may have changed ({reason}). You are at {tab.url}."
            ) from None
