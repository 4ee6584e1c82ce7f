"""The process of one browser, which does one task after the other: a Ray actor."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack

from playwright.async_api import Browser

from waygraph.agents.models.budget import ModelBudget
from waygraph.agents.models.create import open_model
from waygraph.agents.runner.attempt import AttemptOptions, AttemptResult, TaskAttempts
from waygraph.agents.runner.retries import AttemptFailure
from waygraph.agents.tasks.task import Task
from waygraph.core.errors import BrowserFailure
from waygraph.pipeline.browser.process.launch import launch
from waygraph.pipeline.encode.registry import create_encoder
from waygraph.sdk.facade import AsyncWaygraph


class TaskWorker:
    """Does tasks of one run in a browser of its own. Its methods are awaited one after the other.

    Parameters
    ----------
    options
        Options of the run.
    """

    def __init__(self, options: AttemptOptions) -> None:
        self._options = options
        self._attempts: TaskAttempts | None = None
        self._browser: Browser | None = None
        self._browser_stack = AsyncExitStack()
        self._stack = AsyncExitStack()
        """Connections of the model, which end with the process."""

    async def process(self) -> int:
        """Return the id of this process."""
        return os.getpid()

    async def attempt(self, task: Task, budget: ModelBudget) -> AttemptResult:
        """Do a task; see `TaskAttempts.attempt`.

        Parameters
        ----------
        task
            The task, without open placeholders.
        budget
            What is left of the budget of the run.

        Returns
        -------
        AttemptResult
            The result.

        Raises
        ------
        EncodingFailed
            If the encoder cannot be loaded.
        EnvironmentMissing
            If there is no browser, or no client for chat models.
        """
        if self._attempts is None:
            maps = AsyncWaygraph(self._options.maps, self._options.api_key) if self._options.maps else None
            encoder = await asyncio.to_thread(create_encoder, self._options.settings.encode)
            model_settings, model = self._options.settings.agents.model, None
            if self._options.agent.takes_model and model_settings.model:
                model = await self._stack.enter_async_context(open_model(model_settings))
            selector_settings, selector = self._options.settings.agents.page_model, None
            if self._options.agent.takes_model and selector_settings.model:
                selector = await self._stack.enter_async_context(open_model(selector_settings))
            self._attempts = TaskAttempts(self._options, encoder, maps, model, selector)
        try:
            browser = await self._running_browser()
        except BrowserFailure as error:
            return AttemptResult(None, AttemptFailure.BROWSER_LOST, error.message)
        return await self._attempts.attempt(task, browser, budget)

    async def _running_browser(self) -> Browser:
        if self._browser is None or not self._browser.is_connected():
            await self._browser_stack.aclose()
            self._browser = await self._browser_stack.enter_async_context(launch(self._options.settings.browser))
        return self._browser
