"""Where do the sites of `bench.sites` come from? From package registries, served on loopback by processes of their own.

Each is installed into a scratch folder by the registry's own client, as it is configured on this machine.
"""

from __future__ import annotations

import re
import secrets
import select
import socket
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright

from pipeline.browser.find import find_browser

GENTELELLA = "gentelella@4.2.0"
PYTHON_DOCS = "python3.11-doc"
WAGTAIL = "wagtail==8.0.1"
_REQUEST = re.compile(r'"(?P<method>[A-Z]+) (?P<target>\S+) HTTP/[\d.]+" (?P<status>\d{3})')


class NotAvailable(Exception):
    """The site could not be got on this machine."""


@dataclass(frozen=True)
class Served:
    """A site that runs.

    Attributes
    ----------
    start : URL to explore from.
    log : the server's log of requests, one a line.
    storage_state : the session of somebody who logged in, when there is a login.
    pages : URLs of all pages that the site is known to have, where a folder tells.
    contents : what the site holds, as text; equal before and after when nothing was changed.
    """

    start: str
    log: Path
    storage_state: Path | None = None
    pages: tuple[str, ...] = ()
    contents: Callable[[], str] = str

    def requests(self) -> Counter[str]:
        """How many requests of each method the server has seen."""
        return Counter(found["method"] for found in _REQUEST.finditer(self.log.read_text(errors="replace")))


def run(*command: str | Path, cwd: Path, stdin: str = "") -> str:
    """Run a client to its end and give what it printed.

    Raises
    ------
    NotAvailable
        When it is not there, or fails.
    """
    try:
        done = subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotAvailable(f"{command[0]}: {error}") from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise NotAvailable(f"{' '.join(map(str, command[:3]))} failed: {''.join(last)}")
    return done.stdout


@contextmanager
def serving(*command: str | Path, cwd: Path, port: int, log: Path) -> Iterator[str]:
    """A server as a process of its own, from when it listens to the end of the block; gives its URL."""
    with log.open("w") as out, subprocess.Popen(command, cwd=cwd, stdout=out, stderr=out) as server:
        try:
            began = time.monotonic()
            while not _listens(port):
                if server.poll() is not None or time.monotonic() - began > 60:
                    raise NotAvailable(f"{command[0]} does not listen: {log.read_text()[-300:]}")
                select.select([], [], [], 0.1)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def folder(root: Path, start: str, pages: str, log: Path) -> Iterator[Served]:
    """The files below `root`; `pages` is the glob of those that are pages."""
    port = free_port()
    command = (sys.executable, "-u", "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(root))
    with serving(*command, cwd=root, port=port, log=log) as url:
        found = sorted(url + path.relative_to(root).as_posix() for path in root.glob(pages))
        yield Served(url + start, log, pages=tuple(found))


@contextmanager
def gentelella(scratch: Path) -> Iterator[Served]:
    """An admin dashboard of 58 pages: menus, dialogs, charts, tables, calendar, kanban. All made by scripts."""
    root = scratch / "gentelella" / "package" / "dist"
    if not root.exists():
        (scratch / "gentelella").mkdir(exist_ok=True)
        packed = run("npm", "pack", "--silent", GENTELELLA, cwd=scratch / "gentelella").strip().splitlines()[-1]
        with tarfile.open(scratch / "gentelella" / packed) as archive:
            archive.extractall(scratch / "gentelella", filter="data")
    with folder(root, "production/index.html", "production/*.html", scratch / "gentelella.log") as served:
        yield served


@contextmanager
def python_docs(scratch: Path) -> Iterator[Served]:
    """Documentation made by Sphinx: hundreds of long pages."""
    place = f"usr/share/doc/{PYTHON_DOCS.removesuffix('-doc')}/html"
    installed, root = Path("/") / place, scratch / "python-docs" / place
    if not (installed / "index.html").exists() and not root.exists():
        (scratch / "python-docs").mkdir(exist_ok=True)
        run("apt-get", "download", PYTHON_DOCS, cwd=scratch / "python-docs")
        package = next((scratch / "python-docs").glob("*.deb"))
        run("dpkg-deb", "-x", package, scratch / "python-docs", cwd=scratch)
    root = installed if (installed / "index.html").exists() else root
    with folder(root, "index.html", "**/*.html", scratch / "python-docs.log") as served:
        yield served


#: What an editor would have made: some pages, an image, a few accounts.
_CONTENT = """
from django.contrib.auth import get_user_model
from django.core.files.base import ContentFile
from django.contrib.contenttypes.models import ContentType
from home.models import HomePage
from wagtail.documents.models import Document
from wagtail.models import Page

users = get_user_model().objects
if not users.filter(username="admin").exists():
    users.create_superuser("admin", "admin@example.com", {password!r})
    users.create_user("editor", "editor@example.com", None, first_name="Edda", last_name="Itor")
    home = Page.objects.get(slug="home")
    for title in ("About us", "Opening hours", "Collections", "Contact"):
        child = home.add_child(instance=HomePage(title=title))
        child.save_revision(user=users.get(username="admin"))
    collections = Page.objects.get(slug="collections")
    for title in ("Ceramics", "Maps", "Prints"):
        collections.add_child(instance=HomePage(title=title, live=title != "Prints"))
    for title in ("Annual report", "House rules"):
        document = Document(title=title, uploaded_by_user=users.get(username="admin"))
        document.file.save(title.replace(" ", "-").lower() + ".txt", ContentFile(title.encode()))
"""


@contextmanager
def wagtail(scratch: Path) -> Iterator[Served]:
    """The administration of a content management system on Django, with a superuser's session."""
    root = scratch / "wagtail"
    python = root / "venv" / "bin" / "python"
    password = root / "password"
    if not password.exists():
        root.mkdir(exist_ok=True)
        run(sys.executable, "-m", "venv", "venv", cwd=root)
        run(python, "-m", "pip", "install", "--quiet", WAGTAIL, cwd=root)
        (root / "project").mkdir()
        run(python.with_name("wagtail"), "start", "museum", "project", cwd=root)
        run(python, "manage.py", "migrate", "--verbosity", "0", cwd=root / "project")
        secret = secrets.token_urlsafe(16)
        run(python, "manage.py", "shell", cwd=root / "project", stdin=_CONTENT.format(password=secret))
        password.write_text(secret)
        password.chmod(0o600)

    def contents() -> str:
        # Sessions are no contents. Who has a page open is written down by the server itself, for every view.
        text = run(
            python,
            "manage.py",
            "dumpdata",
            "--exclude=sessions",
            "--exclude=wagtailadmin.editingsession",
            "--indent=1",
            cwd=root / "project",
        )
        return re.sub(r'"last_login": "[^"]*"', "", text)

    port = free_port()
    command = (python, "-u", "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}")
    with serving(*command, cwd=root / "project", port=port, log=scratch / "wagtail.log") as url:
        state = scratch / "wagtail-session.json"
        _log_in(f"{url}admin/login/", "admin", password.read_text(), state)
        yield Served(f"{url}admin/", scratch / "wagtail.log", storage_state=state, contents=contents)


def _log_in(url: str, user: str, password: str, state: Path) -> None:
    """Log in as a person does, and save the session."""
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=find_browser().path) as browser:
        page = browser.new_page()
        page.goto(url)
        page.fill("[name=username]", user)
        page.fill("[name=password]", password)
        page.press("[name=password]", "Enter")
        page.wait_for_url(lambda here: "login" not in here)
        state.touch(0o600)
        page.context.storage_state(path=state)


def fetch(url: str, cookies: str = "") -> tuple[str, str]:
    """Address in the end and HTML of a page, without a browser; no HTML when it is no page."""
    answer = httpx.get(url, headers={"Cookie": cookies} if cookies else {}, follow_redirects=True, timeout=20)
    is_page = answer.is_success and "html" in answer.headers.get("content-type", "")
    return str(answer.url), answer.text if is_page else ""
