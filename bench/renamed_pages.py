"""Contents of the sites with made-up names: 500 buoys and 500 letters, each told by its number alone."""

from __future__ import annotations

FJORDS = (
    *("Aldervik", "Brennoy", "Corrsund", "Dunvaer", "Eskholm", "Fallnes", "Grimvag", "Hestoy", "Ilsund", "Jorvag"),
    *("Kelpvik", "Lundvaer", "Mornes", "Nettoy", "Orsund", "Purvik", "Quernes", "Ravnoy", "Stillvag", "Tarnholm"),
)
KEEPERS = (
    *("Oda Brekke", "Per Haugen", "Signe Moe", "Tor Lien", "Una Dahl", "Vidar Ness"),
    *("Ylva Strand", "Arne Foss", "Berit Aune", "Carl Eide", "Dina Holt", "Egil Rud"),
)
_BOATS = (
    *("Puffin", "Old Nan", "Windrose", "Kittiwake", "Sea Holly", "Marten"),
    *("Lodestar", "Gannet", "Blue Tom", "Harrier", "Tansy", "Merganser"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_FIRST = (
    *("Grey", "Black", "White", "Red", "Blind", "Lame", "Old", "Young", "Silent", "Singing", "Crooked", "Broad"),
    *("Narrow", "Long", "Short", "Lost", "Merry", "Sullen", "Hollow", "Brave", "Sleepy", "Bitter", "Sweet"),
    *("Golden", "Frosty"),
)
_SECOND = (
    *("Heron", "Otter", "Widow", "Miller", "Piper", "Abbot", "Badger", "Cobbler", "Drummer", "Eagle", "Ferryman"),
    *("Gull", "Hermit", "Jester", "Kestrel", "Lamb", "Mole", "Nun", "Ox", "Parson"),
)
_BATTERIES = ("lead-acid", "lithium", "zinc-air", "nickel-iron")
_PAINTS = ("tar black", "signal red", "chrome yellow", "bottle green", "chalk white", "rust brown", "sky blue")


def buoy_name(number: int) -> str:
    """Return the name of a buoy, which no other has."""
    index = (number * 137) % 500
    return f"{_FIRST[index % 25]} {_SECOND[index // 25]}"


def buoy_page(number: int) -> str:
    """Return the sheet of a buoy: its number is in the title, its name in the text alone."""
    fjord, keeper = (number - 1) // 25, (number * 7 + number // 12) % 12
    flashes, seconds = 1 + number % 4, 6 + (number * 5) % 17
    return (
        f"<h1>Buoy {number:03}</h1>\n<p>Sailors call this one the <b>{buoy_name(number)}</b>. It lies in the"
        f" [Fjord {FJORDS[fjord]}].</p>\n<table>\n"
        f"<tr><td>Water below</td><td>{11 + (number * 31) % 83} metres</td></tr>\n"
        f"<tr><td>Light</td><td>{flashes} flashes every {seconds} seconds</td></tr>\n"
        f"<tr><td>Paint</td><td>{_PAINTS[(number * 3) % 7]}</td></tr>\n"
        f"<tr><td>Battery</td><td>{_BATTERIES[(number * 11) % 4]}, of {2012 + (number * 13) % 12}</td></tr>\n"
        f"<tr><td>Chain</td><td>{20 + (number * 17) % 61} links, weighed at {210 + (number * 29) % 700} kg</td></tr>\n"
        f"<tr><td>In the care of</td><td>[Keeper {KEEPERS[keeper]}]</td></tr>\n</table>\n"
    )


def fjord_page(number: int) -> str:
    """Return the page of a fjord, with links to its buoys by number."""
    buoys = "".join(f"<li>[Buoy {buoy:03}]</li>\n" for buoy in range(number * 25 + 1, number * 25 + 26))
    return (
        f"<h1>Fjord {FJORDS[number]}</h1>\n<p>{14 + (number * 9) % 37} sea miles long. The pilot boat lies at pier"
        f" {1 + (number * 5) % 9}. Ice closes it in week {1 + (number * 3) % 8}.</p>\n<ul>\n{buoys}</ul>\n"
    )


def keeper_page(number: int) -> str:
    """Return the page of a keeper."""
    return (
        f"<h1>Keeper {KEEPERS[number]}</h1>\n<p>Sails the <b>{_BOATS[(number * 5) % 12]}</b>, and takes calls on"
        f" {_DAYS[(number * 5) % 6]}s on channel {60 + (number * 7) % 19}.</p>\n"
        f"<p>In service since {1983 + (number * 11) % 37}.</p>\n"
    )


def start_page() -> str:
    """Return the first page of the sheets."""
    fjords = "".join(f"<li>[Fjord {name}]</li>\n" for name in FJORDS)
    keepers = "".join(f"<li>[Keeper {name}]</li>\n" for name in KEEPERS)
    return (
        "<h1>Skerrywatch</h1>\n<p>One sheet for each buoy of the outer fjords.</p>\n"
        f"<h2>Fjords</h2>\n<ul>\n{fjords}</ul>\n<h2>Keepers</h2>\n<ul>\n{keepers}</ul>\n"
    )


BOXES, LETTERS = 20, 500
PEOPLE = (
    *("Agda Wren", "Bertil Quist", "Cornelia Thorne", "Dorrit Amsel", "Edvin Larkin", "Frida Penrose"),
    *("Gustaf Holloway", "Hedda Marsh", "Ivar Crane", "Josefa Lind", "Klemens Ashby", "Lovisa Drake"),
)
_TRADES = (
    *("clockmaker", "midwife", "organist", "surveyor", "glazier", "botanist"),
    *("bookbinder", "ferry owner", "apothecary", "lacemaker", "cartographer", "bell founder"),
)
_TOWNS = ("Ostermark", "Pellholm", "Ravensby", "Selmouth", "Tollgate", "Umberfield", "Varnhem")
_ASKS = (
    *("asks for the return of", "laments the loss of", "offers to sell", "describes the repair of"),
    *("gives thanks for", "complains about the price of", "promises to deliver", "quarrels over the ownership of"),
    *("sends a drawing of", "begs for news of", "confesses to the theft of", "warns of a forgery of"),
    *("reports the discovery of", "refuses to part with", "inherits", "misremembers the colour of"),
    *("wagers", "insures", "buries", "auctions"),
)
_THINGS = (
    *("a brass sextant", "a silver thimble", "a walnut cradle", "a copper still", "an ivory fan", "a glass eye"),
    *("a church bell", "a saddle", "a herbarium", "a music box", "a pewter jug", "a ship's lantern", "a chess set"),
    *("a spinning wheel", "a map of the marshes", "a barometer", "a wedding chest", "a hunting horn"),
    *("a telescope", "a stuffed owl", "a lace collar", "a loom", "an iron stove", "a signet ring", "a sledge"),
)


def letter_subject(number: int) -> str:
    """Return what a letter is about, which no other is."""
    index = (number * 211) % 500
    return f"{_ASKS[index // 25]} {_THINGS[index % 25]}"


def letter_page(number: int) -> str:
    """Return the page of a letter: its number is in the title, all else in the text."""
    writer, reader = (number * 5 + number // 12) % 12, (number * 7 + 3 + number // 60) % 12
    reader = (reader + 1) % 12 if reader == writer else reader
    return (
        f"====== Letter {number:03} ======\nIn this letter, [[people:{_page(writer)}|{PEOPLE[writer]}]]"
        f" {letter_subject(number)}. It was written to [[people:{_page(reader)}|{PEOPLE[reader]}]]"
        f" in {_TOWNS[(number * 3 + number // 7) % 7]}, in {1812 + (number * 19) % 77}.\n"
        f"^ Sheets | {1 + (number * 11) % 9} |\n^ Seal | {('red wax', 'black wax', 'none', 'wafer')[number % 4]} |\n"
        f"^ Shelf mark | {'ABCDEFGH'[(number * 5) % 8]}{100 + (number * 37) % 900} |\n"
        f"^ Postage | {2 + (number * 13) % 41} pence |\n"
    )


def _page(person: int) -> str:
    return PEOPLE[person].split()[-1].lower()


def box_page(number: int) -> str:
    """Return the page of a box, with links to its letters by number."""
    letters = "".join(
        f"  * [[letter:l{each:03}|Letter {each:03}]]\n" for each in range(number * 25 - 24, number * 25 + 1)
    )
    return (
        f"====== Box {number} ======\nBought in {1920 + (number * 17) % 60} for {15 + (number * 23) % 90} pounds,"
        f" kept on shelf {1 + (number * 7) % 12}.\n{letters}"
    )


def person_page(number: int) -> str:
    """Return the page of somebody who wrote letters."""
    return (
        f"====== {PEOPLE[number]} ======\nBy trade {_TRADES[(number * 7) % 12]}, born in {1771 + (number * 13) % 50} in"
        f" {_TOWNS[(number * 5) % 7]}. Lived at number {3 + (number * 19) % 40}, Harbour Lane.\n"
    )


def rooms_page() -> str:
    """Return the first page of the archive."""
    boxes = "".join(f"  * [[box:b{number:02}|Box {number}]]\n" for number in range(1, BOXES + 1))
    people = "".join(f"  * [[people:{_page(number)}|{name}]]\n" for number, name in enumerate(PEOPLE))
    return f"====== Fernleigh Letter Room ======\n===== Boxes =====\n{boxes}===== Correspondents =====\n{people}"
