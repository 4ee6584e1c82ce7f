"""What tests of pages in a browser share: sizes, pictures, problems, files that are dropped, accessibility."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, ViewportSize

AXE = Path(__file__).parents[1] / "serve" / "ui" / "node_modules" / "axe-core" / "axe.min.js"
WIDE, NARROW = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)


def watch(context: BrowserContext, *own: str, with_console: bool = False) -> list[str]:
    """Return a list that fills with script errors, violations of policies, and requests to other places than `own`.

    With `with_console`, every error that the console shows is one, also an answer of a service that is none.
    """
    problems: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        if "Content Security" in message.text or (with_console and message.type == "error"):
            problems.append(message.text)

    context.on("weberror", lambda error: problems.append(str(error.error)))
    context.on("console", on_console)
    context.on("request", lambda request: None if request.url.startswith(own) else problems.append(request.url))
    return problems


def take_pictures(page: Page, folder: Path, name: str) -> None:
    """Leave pictures of a view in both sizes and colours."""
    for size in (NARROW, WIDE):
        page.set_viewport_size(size)
        for colours in ("dark", "light"):
            page.emulate_media(color_scheme=colours)
            page.screenshot(path=folder / f"{name}-{size['width']}-{colours}.png")


def serious_violations(page: Page) -> list[Any]:
    """Return what axe-core finds that is serious or critical, as pairs of the rule and the element."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document)")
    assert len(found["passes"]) > 10
    return [
        (each["id"], node["html"])
        for each in found["violations"]
        if each["impact"] in {"serious", "critical"}
        for node in each["nodes"]
    ]


def drop(page: Page, content: str) -> None:
    """Drop a file onto the page, as the browser reports it."""
    held = page.evaluate_handle(
        """(content) => {
            const held = new DataTransfer();
            held.items.add(new File([content], "trace.json", { type: "application/json" }));
            return held;
        }""",
        content,
    )
    for event in ("dragenter", "dragover", "drop"):
        page.dispatch_event("body", event, {"dataTransfer": held})
