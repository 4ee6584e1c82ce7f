"""What is done before a task: resetting its sites, and logging in.

Commands run on the machine that coordinates the run, without a shell. Sites are named as in the task file, or by their
hosts. If a task has logins at several sites, each command writes a file of its own, and these are merged.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, urlsplit

import httpx

from waygraph.core.errors import InvalidInput, WaygraphError
from waygraph.pipeline.browser.storage.session_file import read_session_files

if TYPE_CHECKING:
    from waygraph.agents.tasks.task import Task

#: In a command, these words stand for the id of the task and for the path of its session file.
TASK_WORD, SESSION_WORD = "{task}", "{session}"
#: Longest part of a command's errors that a message quotes, in characters.
_QUOTED = 300


class HookFailed(WaygraphError):
    """A site could not be reset, or logged in to, before a task. Correct the command; the run tries each task twice."""


@dataclass(frozen=True, slots=True)
class SiteHook:
    """One hook of a site.

    Attributes
    ----------
    command
        Words of a command; empty: there is a URL.
    url
        URL that is POSTed; empty: there is a command.
    """

    command: tuple[str, ...] = ()
    url: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the hook of a text: a URL, or a command with its arguments in the quoting of a POSIX shell.

        Parameters
        ----------
        text
            The text.

        Returns
        -------
        SiteHook
            The hook.

        Raises
        ------
        InvalidInput
            If it is empty or its quotes are unbalanced.

        Examples
        --------
        >>> SiteHook.parse("docker restart 'my shop'").command
        ('docker', 'restart', 'my shop')
        """
        if text.strip().lower().startswith(("http://", "https://")):
            return cls(url=text.strip())
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise InvalidInput(f"The command '{text}' cannot be read: {error}.") from error
        if not words:
            raise InvalidInput("A hook has neither a command nor a URL.", hint="Example: --reset shop='./reset.sh'")
        return cls(command=words)


@dataclass(frozen=True, slots=True)
class HookOptions:
    """Hooks of a run.

    Attributes
    ----------
    resets
        What resets a site, by its name. It runs before each task of the site, and no two such tasks run at once.
    logins
        Commands that write the session file of a site's tasks, by its name.
    sessions
        Folder that the names of session files are relative to.
    login_max_age_s
        Age at which a session file is made again, in seconds.
    limit_s
        Limit of a hook's time, in seconds.
    """

    resets: Mapping[str, SiteHook] = field(default_factory=dict)
    logins: Mapping[str, SiteHook] = field(default_factory=dict)
    sessions: Path = Path()
    login_max_age_s: float = 86_400.0
    limit_s: float = 300.0


def parse_hooks(values: Sequence[str] | None, option: str) -> dict[str, SiteHook]:
    """Return hooks by the names of their sites.

    Parameters
    ----------
    values
        Texts of the form `SITE=COMMAND` or `SITE=URL`.
    option
        Name of the option, for messages.

    Returns
    -------
    dict
        The hooks.

    Raises
    ------
    InvalidInput
        If a text is malformed, or a site has two hooks.
    """
    hooks: dict[str, SiteHook] = {}
    for text in values or ():
        site, equals, rest = text.partition("=")
        if not equals or not site.strip():
            raise InvalidInput(f"{option}: '{text}' does not have the form SITE=COMMAND.")
        if site.strip() in hooks:
            raise InvalidInput(f"{option}: '{site.strip()}' has two commands.", hint="Join them in a script.")
        hooks[site.strip()] = SiteHook.parse(rest)
    return hooks


def sites_of(task: Task) -> frozenset[str]:
    """Return the names under which hooks may know the sites of a task: its sites, and their hosts."""
    return frozenset((*task.sites, *(urlsplit(url).netloc for url in (*task.start_urls, *task.site_urls.values()))))


class TaskHooks:
    """Runs the hooks of a run's tasks.

    Parameters
    ----------
    options
        The hooks.
    """

    def __init__(self, options: HookOptions) -> None:
        self._options = options
        self._logins: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Tasks that share a session file wait for the one that makes it."""

    def reset_sites(self, task: Task) -> frozenset[str]:
        """Return the sites that are reset before a task, which no other such task may use meanwhile."""
        return sites_of(task) & self._options.resets.keys()

    async def prepare(self, task: Task) -> None:
        """Reset the sites of a task, then make its session file if it is missing or too old.

        Parameters
        ----------
        task
            The task.

        Raises
        ------
        HookFailed
            If a command or a request failed, took too long, or left no session file, or if the files of two sites
            contradict each other.
        """
        for site in sorted(self.reset_sites(task)):
            await self._run(self._options.resets[site], f"The reset of '{site}'", task)
        if not task.storage_state:
            return
        path = self._session_file(task)
        sites = sorted(sites_of(task) & self._options.logins.keys())
        async with self._logins[path]:
            if len(sites) < 2:
                for site in sites:
                    await self._log_in(site, task, path)
                return
            parts = {site: path.with_name(f"{path.stem}.{quote(site, safe='')}{path.suffix}") for site in sites}
            is_new = [await self._log_in(site, task, part) for site, part in parts.items()]
            if any(is_new) or not path.is_file():
                _merge([*parts.values()], path)

    async def _log_in(self, site: str, task: Task, path: Path) -> bool:
        """Write the session file of a site, if it is missing or too old; return whether it was."""
        if _age_s(path) < self._options.login_max_age_s:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        before = _written_ns(path)
        subject = f"The login to '{site}'"
        await self._run(self._options.logins[site], subject, task, path)
        if _written_ns(path) in (None, before):
            raise HookFailed(f"{subject} did not write '{path}'.", hint=f"{SESSION_WORD} is its path in commands.")
        return True

    async def _run(self, hook: SiteHook, subject: str, task: Task, session: Path | None = None) -> None:
        """Run a hook; `session` is the session file that it writes or, if None, that of the task."""
        words = {TASK_WORD: task.task_id, SESSION_WORD: str(session or self._session_file(task))}
        try:
            async with asyncio.timeout(self._options.limit_s):
                problem = await (_post(hook.url) if hook.url else self._run_command(hook.command, words))
        except TimeoutError:
            problem = f"took more than {self._options.limit_s:g} s"
        if problem:
            raise HookFailed(f"{subject} {problem}.")

    @staticmethod
    async def _run_command(command: Sequence[str], words: Mapping[str, str]) -> str:
        """Run a command; return what went wrong, or an empty text."""
        arguments = [_with_words(argument, words) for argument in command]
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            return f"could not start '{arguments[0]}': {error.strerror}"
        try:
            _, errors = await process.communicate()
        except asyncio.CancelledError:
            # The command may have started others, which would change the site under a later task.
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            raise
        if process.returncode == 0:
            return ""
        said = " ".join(errors.decode(errors="replace").split())[-_QUOTED:]
        return f"ended with exit code {process.returncode}" + (f": {said}" if said else "")

    def _session_file(self, task: Task) -> Path:
        return (self._options.sessions / task.storage_state).absolute()


def _merge(parts: Sequence[Path], path: Path) -> None:
    """Replace a file by the sessions of several sites, readable by its owner alone: another task may be reading it."""
    try:
        merged = read_session_files(parts)
    except InvalidInput as error:
        raise HookFailed(f"The sessions cannot be merged. {error.message}", hint=error.hint) from error
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(merged, file)
    Path(temporary).replace(path)


async def _post(url: str) -> str:
    """POST to a URL; return what went wrong, or an empty text."""
    try:
        async with httpx.AsyncClient(timeout=None) as client:  # noqa: S113 - the caller limits the time
            response = await client.post(url)
    except httpx.HTTPError as error:
        return f"failed: {error or type(error).__name__}"
    return "" if response.is_success else f"was answered with status {response.status_code}"


def _with_words(argument: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        argument = argument.replace(word, value)
    return argument


def _age_s(path: Path) -> float:
    """Return the age of a file in seconds; infinite if there is none."""
    try:
        return max(time.time() - path.stat().st_mtime, 0.0)
    except FileNotFoundError:
        return float("inf")


def _written_ns(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None
