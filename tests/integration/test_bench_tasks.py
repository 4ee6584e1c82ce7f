"""The benchmark's tasks over the demo shop: each can be done and can be failed."""

from __future__ import annotations

import asyncio

from bench.tasks.replay import check_task, read_site
from tests.browsers import BROWSERS
from waygraph.demo_site import DemoSite


def test_tasks_over_the_demo_shop_are_replayed_as_they_should():
    with DemoSite() as shop:
        tasks = read_site("demo_shop", shop.url)

        async def check() -> dict[str, list[str]]:
            browser = await BROWSERS.browser()
            context = await browser.new_context()
            try:
                checks = [check_task(context, shop.url, task, tasks.replays[task.task_id]) for task in tasks.file.tasks]
                return {
                    task.task_id: found
                    for task, found in zip(tasks.file.tasks, await asyncio.gather(*checks), strict=True)
                }
            finally:
                await context.close()

        problems = BROWSERS.run(check())
        assert len(problems) == 14
        assert {task_id: found for task_id, found in problems.items() if found} == {}
        assert shop.mutations == 0
