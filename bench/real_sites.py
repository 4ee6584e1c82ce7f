"""Sites of others for benchmarks, from package registries, each served on loopback by its own process.

Each is installed into a scratch folder by the registry's own client, as it is configured on this machine.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import select
import shutil
import socket
import sqlite3
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright

from tests.sites.server import free_port
from waygraph.pipeline.browser.process.find import find_browser

GENTELELLA = "gentelella@4.2.0"
PYTHON_DOCS = "python3.11-doc"
WAGTAIL = "wagtail==8.0.1"
TABLER = "@tabler/preview@1.2.0"
NODE_RED = "node-red@4.1.15"
FOSSIL = ("fossil", "libfuse2")
DOKUWIKI = (
    *("dokuwiki", "php-geshi", "php-phpseclib", "php-random-compat", "libphp-simplepie"),
    *("libjs-jquery", "libjs-jquery-cookie", "libjs-jquery-ui"),
    *("php8.2-cli", "php8.2-common", "php8.2-opcache", "php8.2-xml"),
    *("libargon2-1", "libicu72", "libsodium23", "libxml2"),
)
JUPYTERLAB = "jupyterlab==4.6.6"
#: A request in a server's log: as most write it ("GET /a HTTP/1.1" 200), as Tornado and PHP do (200 GET /a and
#: [200]: GET /a).
_REQUEST = re.compile(r'"(?P<common>[A-Z]+) \S+ HTTP/[\d.]+" \d{3}|\b\d{3}(?:\]:)? (?P<later>[A-Z]+) /')


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
    forget : makes the server forget how an account left its pages (open tabs, a layout), so that the next agent finds
        what was explored; it is called before each walk.
    """

    start: str
    log: Path
    storage_state: Path | None = None
    pages: tuple[str, ...] = ()
    contents: Callable[[], str] = str
    forget: Callable[[], None] = lambda: None

    def requests(self) -> Counter[str]:
        """How many requests of each method the server has seen."""
        found = _REQUEST.finditer(self.log.read_text(errors="replace"))
        return Counter(request["common"] or request["later"] for request in found)


def run(*command: str | Path, cwd: Path, stdin: str = "", env: Mapping[str, str] | None = None) -> str:
    """Run a client to its end and give what it printed.

    Raises
    ------
    NotAvailable
        When it is not there, or fails.
    """
    try:
        done = subprocess.run(
            command, cwd=cwd, input=stdin, env=env, capture_output=True, text=True, timeout=600, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotAvailable(f"{command[0]}: {error}") from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise NotAvailable(f"{' '.join(map(str, command[:3]))} failed: {''.join(last)}")
    return done.stdout


@contextmanager
def serving(
    *command: str | Path, cwd: Path, port: int, log: Path, env: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a server as its own process until the end of the block; yield its URL once it listens."""
    with log.open("w") as out, subprocess.Popen(command, cwd=cwd, stdout=out, stderr=out, env=env) as server:
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


@contextmanager
def folder(root: Path, start: str, pages: str, log: Path) -> Iterator[Served]:
    """Serve the files below `root`; `pages` is the glob of the files that are pages."""
    port = free_port()
    command = (sys.executable, "-u", "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(root))
    with serving(*command, cwd=root, port=port, log=log) as url:
        found = sorted(url + path.relative_to(root).as_posix() for path in root.glob(pages))
        yield Served(url + start, log, pages=tuple(found))


def npm_folder(package: str, where: Path) -> Path:
    """Return the `dist` folder of an npm package."""
    root = where / "package" / "dist"
    if not root.exists():
        where.mkdir(exist_ok=True)
        packed = run("npm", "pack", "--silent", package, cwd=where).strip().splitlines()[-1]
        with tarfile.open(where / packed) as archive:
            archive.extractall(where, filter="data")
    return root


@contextmanager
def tabler(scratch: Path) -> Iterator[Served]:
    """Serve a Bootstrap dashboard template of more than 100 pages; the start page is the one about dialogs."""
    with folder(npm_folder(TABLER, scratch / "tabler"), "modals.html", "*.html", scratch / "tabler.log") as served:
        yield served


@contextmanager
def gentelella(scratch: Path) -> Iterator[Served]:
    """Serve an admin dashboard of 58 pages: menus, dialogs, charts, tables, calendar, kanban, all made by scripts."""
    root = npm_folder(GENTELELLA, scratch / "gentelella")
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
    """Serve the administration of a Django content management system, with a superuser's session."""
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
        # Sessions are no contents. Who has a page open is written down by the server itself, for every view; for the
        # first view of each editor and page, a profile and a subscription that is off.
        text = run(
            python,
            "manage.py",
            "dumpdata",
            "--exclude=sessions",
            "--exclude=wagtailadmin.editingsession",
            "--exclude=wagtailusers.userprofile",
            "--exclude=wagtailcore.pagesubscription",
            "--indent=1",
            cwd=root / "project",
        )
        return re.sub(r'"last_login": "[^"]*"', "", text)

    port = free_port()
    command = (python, "-u", "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}")
    with serving(*command, cwd=root / "project", port=port, log=scratch / "wagtail.log") as url:
        state = scratch / "wagtail-session.json"
        log_in(f"{url}admin/login/", "admin", password.read_text(), state)
        yield Served(f"{url}admin/", scratch / "wagtail.log", storage_state=state, contents=contents)


#: Node-RED as it comes, but for: loopback alone, nothing sent to its makers, and a log of requests.
_NODE_RED_SETTINGS = """
const log = (request, response, next) => {{
  const asked = `"${{request.method}} ${{request.originalUrl}} HTTP/1.1"`;
  response.on("finish", () => console.log(`${{asked}} ${{response.statusCode}}`));
  next();
}};
module.exports = {{
  uiHost: "127.0.0.1", uiPort: {port}, flowFile: "flows.json", credentialSecret: false,
  telemetry: {{ enabled: false, updateNotification: false }},
  editorTheme: {{ palette: {{ catalogues: [] }}, tours: false }}, // as for whoever has closed the tour before
  httpAdminMiddleware: log, logging: {{ console: {{ level: "info" }} }},
}};
"""
_FLOWS = """[
  {"id": "f1", "type": "tab", "label": "Greenhouse", "info": "Waters the plants."},
  {"id": "f2", "type": "tab", "label": "Alarms"},
  {"id": "n1", "type": "inject", "z": "f1", "name": "every hour", "props": [{"p": "payload"}], "repeat": "3600",
   "payload": "", "payloadType": "date", "x": 140, "y": 100, "wires": [["n2"]]},
  {"id": "n2", "type": "function", "z": "f1", "name": "is it dry?", "func": "return msg;", "outputs": 1, "x": 330,
   "y": 100, "wires": [["n3"]]},
  {"id": "n3", "type": "debug", "z": "f1", "name": "log", "active": true, "complete": "payload", "x": 520, "y": 100,
   "wires": []},
  {"id": "n4", "type": "comment", "z": "f2", "name": "nothing here yet", "info": "", "x": 160, "y": 80, "wires": []}
]
"""


@contextmanager
def node_red(scratch: Path) -> Iterator[Served]:
    """Serve an editor of flows: one page of menus, trays, tabs, lists and a drawing."""
    root = scratch / "node-red"
    entry = root / "node_modules" / "node-red" / "red.js"
    if not entry.exists():
        root.mkdir(exist_ok=True)
        (root / "package.json").write_text('{"private": true}')
        run("npm", "install", "--silent", "--no-audit", "--no-fund", NODE_RED, cwd=root)
    user = root / "user"
    user.mkdir(exist_ok=True)
    (user / "flows.json").write_text(_FLOWS)
    port = free_port()
    (user / "settings.js").write_text(_NODE_RED_SETTINGS.format(port=port))
    command = ("node", entry, "--userDir", user)
    with serving(*command, cwd=root, port=port, log=scratch / "node-red.log") as url:
        yield Served(url, scratch / "node-red.log", contents=lambda: _texts(user, "*.json", "lib/**/*"))


def _texts(root: Path, *globs: str) -> str:
    """Names and contents of the files below `root` that match."""
    files = sorted(path for glob in globs for path in root.glob(glob) if path.is_file())
    return "\n".join(f"{path.relative_to(root)}\n{path.read_bytes().hex()}" for path in files)


def fossil_program(root: Path) -> tuple[Path, dict[str, str]]:
    """Return the program of Fossil below `root`, where it is unpacked if need be, and the environment that it needs."""
    program = root / "usr" / "bin" / "fossil"
    if not program.exists():
        root.mkdir(exist_ok=True)
        run("apt-get", "download", *FOSSIL, cwd=root)
        for package in root.glob("*.deb"):
            run("dpkg-deb", "-x", package, root, cwd=root)
    libraries = root / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
    env = {"LD_LIBRARY_PATH": f"{libraries}:{root / 'lib' / libraries.name}", "PATH": os.environ["PATH"]}
    return program, env


@contextmanager
def fossil(scratch: Path) -> Iterator[Served]:
    """Version control with a web interface of its own, logged in: timelines, files, tickets, wiki, forum, settings."""
    root = scratch / "fossil"
    program, env = fossil_program(root)
    env |= {"HOME": str(root), "USER": "admin"}
    password, repository = root / "password", root / "museum.fossil"
    if not password.exists():
        secret = secrets.token_urlsafe(16)
        run(program, "init", "--project-name", "Museum", "--date-override", "2024-04-30", repository, cwd=root, env=env)
        _fill(program, repository, root / "checkout", env)
        run(program, "user", "password", "admin", secret, "-R", repository, cwd=root, env=env)
        password.write_text(secret)
        password.chmod(0o600)

    def contents() -> str:
        # Who logged in when is no content, nor are the database's statistics about its indexes.
        with closing(sqlite3.connect(f"file:{repository}?mode=ro", uri=True)) as database:
            rows = database.iterdump()
            return "\n".join(
                row for row in rows if not re.match(r'INSERT INTO "?(user|accesslog|config|sqlite_stat1)"?\b', row)
            )

    port = free_port()
    command = (program, "server", "--localhost", "--port", str(port), repository)
    with serving(*command, cwd=root, port=port, log=scratch / "fossil.log", env=env) as url:
        state = scratch / "fossil-session.json"
        log_in(f"{url}login", "admin", password.read_text(), state, fields=("u", "p"))
        yield Served(url, scratch / "fossil.log", storage_state=state, contents=contents)


def _fill(program: Path, repository: Path, checkout: Path, env: Mapping[str, str]) -> None:
    """Add what a small project has: some commits, a branch, a tag, wiki pages, a note, tickets."""
    checkout.mkdir()

    def do(*command: str, stdin: str = "") -> None:
        run(program, *command, cwd=checkout, stdin=stdin, env=env)

    do("open", "--force", str(repository))
    for number, (name, text) in enumerate(
        [("README.md", "# Museum\n\nSee [rooms](docs/rooms.md).\n"), ("docs/rooms.md", "# Rooms\n\nTwo.\n")]
        + [(f"src/room{i}.c", f"int room{i}(void) {{\n  return {i};\n}}\n") for i in range(4)]
    ):
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text(text)
        do("add", name)
        do("commit", "-m", f"Adds {name}", "--date-override", f"2024-05-{number + 1:02}T10:00:00", "--no-prompt")
    (checkout / "src/room1.c").write_text("int room1(void) {\n  return 11;\n}\n")
    do("commit", "-m", "The first room moves", "--branch", "moving", "--tag", "v1", "--no-prompt")
    for page in ("Opening hours", "Tickets"):
        do("wiki", "create", page, stdin=f"<h1>{page}</h1><p>Every day.</p>")
    for title in ("Lamp is broken", "Door creaks"):
        do("ticket", "add", "title", title, "status", "Open", "type", "Code_Defect")


def dokuwiki_program(root: Path, *, anew: bool) -> tuple[tuple[str | Path, ...], dict[str, str]]:
    """Return the command that runs PHP for a DokuWiki below `root`, unpacked there `anew`, and its environment."""
    program, ini = root / "usr" / "bin" / "php8.2", root / "php.ini"
    if anew:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        run("apt-get", "download", *DOKUWIKI, cwd=root)
        for name in DOKUWIKI:
            run("dpkg-deb", "-x", next(root.glob(f"{name}_*.deb")), root, cwd=root)
            if name == "dokuwiki":
                _move(root)
        (root / "sessions").mkdir(exist_ok=True)
        modules = next((root / "usr" / "lib" / "php").iterdir())
        ini.write_text(_PHP_INI.format(root=root, modules=modules))
    libraries = root / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
    env = {"LD_LIBRARY_PATH": str(libraries), "PATH": os.environ["PATH"], "PHP_INI_SCAN_DIR": ""}
    return (program, "-c", ini), env


@contextmanager
def dokuwiki(scratch: Path) -> Iterator[Served]:
    """Serve a wiki of plain text files, with an administrator's session: pages, media, access rules, settings."""
    root = scratch / "dokuwiki"
    password = root / "password"
    command, env = dokuwiki_program(root, anew=not password.exists())
    wiki = root / "usr" / "share" / "dokuwiki"
    if not password.exists():
        (root / "etc" / "dokuwiki" / "local.php").write_text(_DOKUWIKI_SETTINGS)
        (root / "var" / "lib" / "dokuwiki" / "acl" / "acl.auth.php").write_text(_DOKUWIKI_RULES)
        (root / "var" / "lib" / "dokuwiki" / "acl" / "users.auth.php").touch(0o600)
        media = root / "var" / "lib" / "dokuwiki" / "data" / "media"
        shutil.copy(media / "wiki" / "dokuwiki-128.png", media / "floor_plan.png")
        secret = secrets.token_urlsafe(16)
        run(*command, cwd=wiki, stdin=_DOKUWIKI_CONTENT.replace("{password}", secret), env=env)
        password.write_text(secret)
        password.chmod(0o600)

    def contents() -> str:
        # What is derived from pages (indexes, caches), and locks of pages that are open in an editor, is no content.
        kept = ("data/pages", "data/attic", "data/media", "data/media_attic", "acl")
        return _texts(root, "etc/dokuwiki/*", *(f"var/lib/dokuwiki/{place}/**/*" for place in kept))

    port = free_port()
    server = (*command, "-S", f"127.0.0.1:{port}", "-t", wiki)
    with serving(*server, cwd=wiki, port=port, log=scratch / "dokuwiki.log", env=env) as url:
        state = scratch / "dokuwiki-session.json"
        log_in(f"{url}doku.php?id=start&do=login", "admin", password.read_text(), state, fields=("u", "p"))
        yield Served(f"{url}doku.php", scratch / "dokuwiki.log", storage_state=state, contents=contents)


def _move(root: Path) -> None:
    """Make the absolute paths that an unpacked PHP program names lie below `root`; drop its links to nothing."""
    place = str(root.resolve())
    for path in [*root.rglob("*")]:
        if path.is_symlink():
            target = path.readlink()
            if target.is_absolute() and not target.is_relative_to(place):
                path.unlink()
                path.symlink_to(f"{place}{target}")
            if "php" in path.parts and not path.exists():
                path.unlink()
        elif path.suffix == ".php":
            text = path.read_bytes()
            moved = re.sub(rb"(?<=['\"])(?=/(?:usr/share|etc|var/lib)/)", place.encode(), text)
            if moved != text:
                path.write_bytes(moved)


#: The modules that the wiki needs; sessions kept apart from those of other programs.
_PHP_INI = """
extension_dir = "{modules}"
extension = ctype
extension = dom
extension = iconv
extension = simplexml
extension = tokenizer
extension = xml
extension = xmlreader
zend_extension = opcache
session.save_path = "{root}/sessions"
date.timezone = UTC
"""
#: Access rules on, all changes kept in the list of recent ones; requests to the makers end at a port without a server.
_DOKUWIKI_SETTINGS = """<?php
$conf['title'] = 'Museum';
$conf['useacl'] = 1;
$conf['superuser'] = '@admin';
$conf['subscribers'] = 1;
$conf['recent_days'] = 36500;
$conf['updatecheck'] = 0;
$conf['proxy']['host'] = '127.0.0.1';
$conf['proxy']['port'] = '9';
"""
_DOKUWIKI_RULES = """# acl.auth.php
# <?php exit()?>
*               @ALL          1
*               @user         8
staff:*         @ALL          0
staff:*         @staff        8
"""
#: What a small institution would have written.
_DOKUWIKI_CONTENT = """<?php
define('DOKU_INC', getcwd() . '/');
require_once DOKU_INC . 'inc/init.php';
$auth->createUser('admin', '{password}', 'Ada Min', 'admin@example.com', ['admin', 'user']);
$auth->createUser('editor', bin2hex(random_bytes(9)), 'Edda Itor', 'editor@example.com', ['user', 'staff']);
$INPUT->server->set('REMOTE_USER', 'admin');
$hours = "====== Opening hours ======\n===== Summer =====\nTen to six.\n===== Winter =====\nTen to four.\n";
$pages = [
  'start' => "====== Museum ======\nWelcome to the wiki of the museum.\n\n{{:floor_plan.png|Floor plan}}\n"
    . "===== Visitors =====\n  * [[visit:opening_hours]]\n  * [[visit:tickets]]\n  * [[visit:getting_here]]\n"
    . "===== Collections =====\n  * [[collections:ceramics]]\n  * [[collections:maps]]\n  * [[collections:prints]]\n"
    . "===== For the staff =====\n  * [[staff:handbook]]\n  * [[staff:loans]]\n"
    . "===== About this wiki =====\n  * [[wiki:syntax]]\n  * [[wiki:welcome]]\n  * [[playground:playground]]\n",
  'sidebar' => "  * [[start]]\n  * [[visit:opening_hours]]\n  * [[collections:ceramics]]\n  * [[staff:handbook]]\n",
  'visit:opening_hours' => $hours,
  'visit:tickets' => "====== Tickets ======\n===== Prices =====\n^ Who ^ Price ^\n| Adults | 9 |\n| Children | 4 |\n"
    . "===== Groups =====\nFrom ten people on, see [[visit:opening_hours]].\n===== Refunds =====\nAt the desk.\n",
  'visit:getting_here' => "====== Getting here ======\n===== By train =====\nLine two.\n===== By car =====\nNo.\n",
  'collections:ceramics' => "====== Ceramics ======\n===== Rooms =====\nOne and two.\n"
    . "===== Catalogue =====\n{{:floor_plan.png?60 |}} See [[collections:maps]].\n===== Care =====\nDust weekly.\n",
  'collections:maps' => "====== Maps ======\n===== Before 1800 =====\nForty.\n===== After 1800 =====\nNinety.\n",
  'staff:handbook' => "====== Handbook ======\n===== Keys =====\nAt the desk.\n===== Alarms =====\nCall the guard.\n"
    . "===== Lost property =====\nA box in room one.\n",
  'staff:loans' => "====== Loans ======\n===== Lent =====\nThree maps.\n===== Borrowed =====\nNone.\n",
];
foreach ($pages as $id => $text) saveWikiText($id, $text, 'written');
sleep(2); // the wiki divides by the time between the first change and the last
saveWikiText('visit:opening_hours', $hours . "===== Holidays =====\nClosed.\n", 'holidays are closed');
foreach (array_keys($pages) as $id) idx_addPage($id);
"""


@contextmanager
def jupyterlab(scratch: Path) -> Iterator[Served]:
    """Serve a notebook workbench: one page of menus, panels, a file browser, tabs, a launcher."""
    root = scratch / "jupyterlab"
    python = root / "venv" / "bin" / "python"
    if not (root / "venv" / "bin" / "jupyter-lab").exists():
        root.mkdir(exist_ok=True)
        run(sys.executable, "-m", "venv", "venv", cwd=root)
        run(python, "-m", "pip", "install", "--quiet", JUPYTERLAB, cwd=root)
    work, own = root / "work", root / "own"
    for place in (work, own):
        shutil.rmtree(place, ignore_errors=True)
    (work / "maps").mkdir(parents=True)
    (work / "README.md").write_text("# Museum\n\nNotes of the curators.\n")
    (work / "visitors.csv").write_text("day,visitors\nMonday,120\nTuesday,98\n")
    (work / "maps" / "rooms.txt").write_text("hall\nattic\n")
    (work / "counting.ipynb").write_text(_NOTEBOOK)
    env = os.environ | {f"JUPYTER_{kind}_DIR": str(own / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    env |= {"IPYTHONDIR": str(own / "ipython"), "HOME": str(own)}
    token, port = secrets.token_urlsafe(16), free_port()
    options = [
        *("--no-browser", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", "--allow-root"),
        *(f"--notebook-dir={work}", f"--IdentityProvider.token={token}", "--log-level=DEBUG"),
    ]
    log = scratch / "jupyterlab.log"
    with serving(python, "-m", "jupyterlab", *options, cwd=work, port=port, log=log, env=env) as url:
        state = scratch / "jupyterlab-session.json"
        log_in(f"{url}login?next=%2Flab", "", token, state, fields=("", "password"))
        yield Served(
            f"{url}lab",
            log,
            storage_state=state,
            contents=lambda: _texts(root, "work/**/*", "own/config/**/*"),
            # Everything that an agent opens is saved, and opened again for the next agent.
            forget=lambda: shutil.rmtree(own / "config" / "lab" / "workspaces", ignore_errors=True),
        )


_NOTEBOOK = """{"cells": [
  {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# Counting visitors\\n", "Every day."]},
  {"cell_type": "code", "id": "b", "metadata": {}, "execution_count": null, "outputs": [], "source": ["1 + 1"]}],
 "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
 "nbformat": 4, "nbformat_minor": 5}
"""


def log_in(url: str, user: str, password: str, state: Path, fields: tuple[str, str] = ("username", "password")) -> None:
    """Log in and save the session; `fields` are the names of the user field (or empty) and the password field."""
    with sync_playwright() as playwright, playwright.chromium.launch(executable_path=find_browser().path) as browser:
        page = browser.new_page()
        page.goto(url)
        if fields[0]:
            page.fill(f"[name={fields[0]}]", user)
        page.fill(f"[name={fields[1]}]", password)
        page.press(f"[name={fields[1]}]", "Enter")
        page.wait_for_url(lambda here: "login" not in here)
        state.touch(0o600)
        page.context.storage_state(path=state)


def fetch(url: str, cookies: str = "") -> tuple[str, str]:
    """Address in the end and HTML of a page, without a browser; no HTML when it is no page."""
    answer = httpx.get(url, headers={"Cookie": cookies} if cookies else {}, follow_redirects=True, timeout=20)
    is_page = answer.is_success and "html" in answer.headers.get("content-type", "")
    return str(answer.url), answer.text if is_page else ""
