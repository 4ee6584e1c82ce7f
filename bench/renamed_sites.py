"""Applications of others under names that nobody has read about, two of them with 500 pages alike.

They are the programs of `bench.real_sites` with made-up contents and brands, so that what an agent says about them was
found on their pages. Contents follow from the number of a page alone, and are the same on each machine.

- `skerrywatch`: Fossil. Project name, menu and footer are set; 500 wiki pages describe buoys. No search, no login.
- `fernleigh`: DokuWiki. Title, logo and footer are replaced; 500 pages describe letters. No search, no login.
- `korvat`: Gentelella. Brand, people, companies and numbers are replaced in all its pages and scripts.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from bench.real_sites import (
    GENTELELLA,
    Served,
    dokuwiki_program,
    folder,
    fossil_program,
    npm_folder,
    run,
    serving,
)
from bench.renamed_pages import (
    BOXES,
    FJORDS,
    KEEPERS,
    LETTERS,
    PEOPLE,
    box_page,
    buoy_page,
    fjord_page,
    keeper_page,
    letter_page,
    person_page,
    rooms_page,
    start_page,
)
from tests.sites.server import free_port

_BUOYS = 500


@contextmanager
def skerrywatch(scratch: Path) -> Iterator[Served]:
    """Serve the sheets of 500 buoys, 25 in each of 20 fjords, and of their keepers."""
    program, env = fossil_program(scratch / "fossil")
    root = scratch / "skerrywatch"
    env |= {"HOME": str(root), "USER": "warden"}
    repository = root / "skerrywatch.fossil"
    if not repository.exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        made = root / "made.fossil"
        run(program, "init", "--project-name", "Skerrywatch", "--date-override", "2024-04-30", made, cwd=root, env=env)
        settings = {
            "index-page": "/wiki?name=Skerrywatch",
            "mainmenu": "Start /home * {}\n",
            "footer": '<div class="footer">Skerrywatch, the sheets of the outer fjords</div>',
        }
        for name, value in settings.items():
            quoted = value.replace("'", "''")
            sql = f"REPLACE INTO config(name, value, mtime) VALUES('{name}', '{quoted}', 0)"
            run(program, "sql", "-R", made, sql, cwd=root, env=env)
        pages = {
            "Skerrywatch": start_page(),
            **{f"Fjord {name}": fjord_page(number) for number, name in enumerate(FJORDS)},
            **{f"Keeper {name}": keeper_page(number) for number, name in enumerate(KEEPERS)},
            **{f"Buoy {number:03}": buoy_page(number) for number in range(1, _BUOYS + 1)},
        }
        for title, text in pages.items():
            run(program, "wiki", "create", title, "-R", made, cwd=root, stdin=text, env=env)
        made.rename(repository)
    port, log = free_port(), scratch / "skerrywatch.log"
    command = (program, "server", "--localhost", "--port", str(port), repository)
    with serving(*command, cwd=root, port=port, log=log, env=env) as url:
        yield Served(f"{url}home", log)


#: No accounts, and nothing but pages: neither search, lists of pages and changes, nor sources.
_FERNLEIGH_SETTINGS = """<?php
$conf['title'] = 'Fernleigh Letter Room';
$conf['tagline'] = 'Five hundred letters in twenty boxes';
$conf['useacl'] = 0;
$conf['license'] = '';
$conf['breadcrumbs'] = 0;
$conf['youarehere'] = 0;
$conf['maxseclevel'] = 0;
$conf['disableactions'] = 'search,index,recent,media,source,edit,revisions,backlink,subscribe,login,register';
$conf['updatecheck'] = 0;
"""
#: A transparent pixel, in place of the logo.
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


@contextmanager
def fernleigh(scratch: Path) -> Iterator[Served]:
    """Serve an archive of 500 letters, 25 in each of 20 boxes, and of the people who wrote them."""
    root = scratch / "fernleigh"
    ready = root / "ready"
    command, env = dokuwiki_program(root, anew=not ready.exists())
    wiki = root / "usr" / "share" / "dokuwiki"
    if not ready.exists():
        (root / "etc" / "dokuwiki" / "local.php").write_text(_FERNLEIGH_SETTINGS)
        # The cookie of another DokuWiki on this machine has another name.
        with (wiki / "inc" / "preload.php").open("a") as preload:
            preload.write("\ndefine('DOKU_SESSION_NAME', 'Fernleigh');\n")
        template = wiki / "lib" / "tpl" / "dokuwiki"
        (template / "tpl_footer.php").write_text("<p>Fernleigh Letter Room</p>\n")
        (template / "images" / "logo.png").write_bytes(base64.b64decode(_PIXEL))
        pages = {
            "start": rooms_page(),
            **{f"box/b{number:02}": box_page(number) for number in range(1, BOXES + 1)},
            **{f"people/{name.split()[-1].lower()}": person_page(number) for number, name in enumerate(PEOPLE)},
            **{f"letter/l{number:03}": letter_page(number) for number in range(1, LETTERS + 1)},
        }
        place = root / "var" / "lib" / "dokuwiki" / "data" / "pages"
        shutil.rmtree(place)
        for name, text in pages.items():
            path = place / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            os.utime(path, (1_714_550_400, 1_714_550_400))  # the page shows when it was written
        ready.touch()
    port, log = free_port(), scratch / "fernleigh.log"
    server = (*command, "-S", f"127.0.0.1:{port}", "-t", wiki)
    with serving(*server, cwd=wiki, port=port, log=log, env=env) as url:
        yield Served(f"{url}doku.php", log)


#: Brand, people, companies, numbers of orders and invoices, in the order in which they are replaced.
_KORVAT = (
    *(("Gentelella", "Korvat"), ("gentelella.io", "korvat.example"), ("gentelella.com", "korvat.example")),
    *(
        ("gentelella-v4", "korvat-v4"),
        ("Colorlib", "Ostrel"),
        ("colorlib.com", "ostrel.example"),
        ("colorlib", "ostrel"),
    ),
    *(("Aigars Silkalns", "Runa Vestby"), ("Aigars", "Runa"), ("aigars", "runa"), ("Kowalski", "Koltmoor")),
    *(("Sarah", "Sunniva"), ("sarah", "sunniva"), ("Michael", "Milorad"), ("michael", "milorad"), ("Reyes", "Rye")),
    *(("Emily", "Edda"), ("emily", "edda"), ("Wang", "Wendt"), ("Mark Kim", "Mikkel Kvam"), ("mark@", "mikkel@")),
    *(("Lina", "Liv"), ("lina@", "liv@"), ("Park", "Parr"), ("Diego", "Dagfinn"), ("diego@", "dagfinn@")),
    *(("Yuki", "Yrsa"), ("yuki@", "yrsa@"), ("Tanaka", "Tangen"), ("Robert", "Roald"), ("robert@", "roald@")),
    *(("Jones", "Juel"), ("Acme", "Dovrel"), ("Globex", "Gimsund"), ("Initech", "Innvik"), ("Umbrella", "Ulvoya")),
    *(("Stark", "Strand"), ("Tyrell", "Tysnes"), ("Wonka", "Valdres"), ("INV-04812", "KV-77315"), ("#78", "#31")),
    ("BLATLV2X", "VESTNO7K"),
)


@contextmanager
def korvat(scratch: Path) -> Iterator[Served]:
    """Serve an admin dashboard whose brand, people, companies and numbers are made up."""
    root = scratch / "korvat"
    if not root.exists():
        made = scratch / "korvat-made"
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(npm_folder(GENTELELLA, scratch / "gentelella"), made)
        for path in chain(made.rglob("*.html"), made.rglob("*.js")):
            text = path.read_text(encoding="utf-8")
            for old, new in _KORVAT:
                # Not in the addresses of files and of other hosts.
                text = re.sub(rf"(?<![\w/-]){re.escape(old)}(?![a-z])", new, text)
            path.write_text(text, encoding="utf-8")
        made.rename(root)
    with folder(root, "production/index.html", "production/*.html", scratch / "korvat.log") as served:
        yield served
