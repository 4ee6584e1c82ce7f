"""A tree search as a process of its own, for tests that kill it: `python -m tests.search_process URL TREE_FILE`.

It proposes every element of every page, changes of data first, and may change data.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.browsers import LOOPBACK_ONLY
from tests.searching import TASK, NoReward
from waygraph.agents.actions import AgentSession, ClickAction, SessionOptions
from waygraph.agents.search import (
    ProposalRequest,
    Proposals,
    ProposedAction,
    SearchLimits,
    SearchOptions,
    TreeSearchAgent,
)
from waygraph.pipeline.browser.process.launch import launch


class EveryElement:
    """Proposes all elements; the first ones have the highest scores."""

    name = "all"

    async def propose(self, request: ProposalRequest) -> Proposals:
        """Return candidate actions; see `CandidateGenerator`."""
        elements = [each for each in request.observation.elements if each.name]
        scored = enumerate(elements, start=1)
        return Proposals(tuple(ProposedAction(ClickAction(element=each.ref), 1 / rank) for rank, each in scored))


async def work(url: str, tree_file: Path) -> None:
    """Search from a URL, or go on with the search of a file."""
    async with launch(LOOPBACK_ONLY) as browser:
        context = await browser.new_context(viewport={"width": 800, "height": 600})
        page = await context.new_page()
        await page.goto(url)
        async with AgentSession(page, SessionOptions(browser=LOOPBACK_ONLY, destructive="allow")) as session:
            options = SearchOptions(SearchLimits(max_steps=100), budget=20, tree_file=tree_file)
            run = await TreeSearchAgent(session, [EveryElement()], NoReward(), options).run(TASK)
    print(run.end.value)  # noqa: T201 - the test reads it


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], Path(sys.argv[2])))
