"""Products, customers and orders of the demo shop. All records are fixed: the site never reads a clock."""

from __future__ import annotations

from dataclasses import dataclass

SHOP = "Northfold"


@dataclass(frozen=True, slots=True)
class Category:
    """A category of products."""

    slug: str
    name: str
    line: str


@dataclass(frozen=True, slots=True)
class Review:
    """A customer's review."""

    author: str
    stars: int
    text: str


@dataclass(frozen=True, slots=True)
class Product:
    """A product. With `sizes` its page has a size guide; without `reviews` it has no reviews tab."""

    slug: str
    name: str
    category: str
    price: int
    line: str
    story: str
    specification: tuple[tuple[str, str], ...]
    stock: int
    sizes: tuple[tuple[str, str, str], ...] = ()
    reviews: tuple[Review, ...] = ()


@dataclass(frozen=True, slots=True)
class Customer:
    """A customer."""

    number: int
    name: str
    email: str
    town: str
    since: str
    note: str


@dataclass(frozen=True, slots=True)
class Order:
    """An order. `lines` are (product slug, quantity)."""

    number: str
    date: str
    customer: int
    status: str
    lines: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """Sum of all lines in euros."""
        return sum(PRODUCTS_BY_SLUG[slug].price * quantity for slug, quantity in self.lines)


CATEGORIES = (
    Category("lighting", "Lighting", "Warm light for evenings that run long."),
    Category("ceramics", "Ceramics", "Thrown by hand, glazed in small batches."),
    Category("textiles", "Textiles", "Wool and linen, woven close to home."),
)

PRODUCTS = (
    Product(
        "ember-table-lamp", "Ember table lamp", "lighting", 129,
        "A linen shade on a turned oak foot.",
        "Ember throws a low, warm pool of light across a desk or bedside. The shade is stretched linen; the foot is "
        "turned from a single piece of oak and finished with hard wax.",
        (("Height", "46 cm"), ("Shade", "Linen, 28 cm"), ("Bulb", "E27, up to 40 W"), ("Cable", "2 m, cloth")), 34,
        reviews=(
            Review("Maren", 5, "The light is exactly as warm as in the pictures."),
            Review("Tobias", 4, "Beautiful foot. I wish the cable were longer."),
        ),
    ),
    Product(
        "halo-pendant", "Halo pendant", "lighting", 210,
        "A spun brass ring that hangs like a small moon.",
        "Halo is spun from one sheet of brass and left unlacquered, so that it darkens with the years. It lights the "
        "table and leaves the room in shadow.",
        (("Diameter", "38 cm"), ("Material", "Brass"), ("Drop", "Up to 160 cm")), 11,
        reviews=(Review("Ingrid", 5, "Hangs over our kitchen table. Everybody asks."),),
    ),
    Product(
        "arc-floor-lamp", "Arc floor lamp", "lighting", 340,
        "One long curve over your favourite chair.",
        "A steel arc rises from a stone foot and carries its shade just where you read.",
        (("Height", "192 cm"), ("Reach", "110 cm"), ("Foot", "Limestone"), ("Weight", "14 kg")), 6,
    ),
    Product(
        "tide-vase", "Tide vase", "ceramics", 68,
        "Stoneware with a glaze that breaks like water.",
        "Every Tide is dipped twice: once in white, once in sea blue. Where the glazes meet, the kiln decides.",
        (("Height", "27 cm"), ("Material", "Stoneware"), ("Opening", "4 cm")), 22,
        reviews=(
            Review("Aino", 5, "Holds a single branch perfectly."),
            Review("Luc", 5, "Heavier than expected, in the best way."),
            Review("Greta", 3, "Mine is darker than the picture, still pretty."),
        ),
    ),
    Product(
        "pebble-mug", "Pebble mug", "ceramics", 24,
        "Speckled, thumb-sized handle, stays warm.",
        "A mug without a corner anywhere. The walls are thick, so tea stays warm for a chapter.",
        (("Volume", "320 ml"), ("Dishwasher", "Yes"), ("Microwave", "Yes")), 120,
        reviews=(Review("Noor", 4, "My hands found it before I was awake."),),
    ),
    Product(
        "field-bowl", "Field bowl", "ceramics", 52,
        "Wide and low, for fruit or for nothing at all.",
        "Turned wide and left unglazed outside. Inside, a green that recalls wet grass.",
        (("Diameter", "31 cm"), ("Height", "9 cm"), ("Oven", "Up to 200 C")), 18,
        reviews=(Review("Emil", 5, "Salad for six. Or one lemon."), Review("Sofia", 4, "Lovely green.")),
    ),
    Product(
        "fjord-wool-throw", "Fjord wool throw", "textiles", 148,
        "Two blues, one sheep's worth of wool.",
        "Woven from the wool of sheep that spend their summers by the water. Brushed once, so it is soft but does not "
        "shed.",
        (("Material", "Wool"), ("Weave", "Twill"), ("Wash", "By hand, cold")), 27,
        sizes=(
            ("Small", "100 x 140 cm", "a chair"),
            ("Regular", "130 x 180 cm", "a sofa"),
            ("Large", "160 x 220 cm", "a bed"),
        ),
        reviews=(Review("Karin", 5, "We argue about who gets it."), Review("Paul", 5, "Warm without weight.")),
    ),
    Product(
        "heather-cushion", "Heather cushion", "textiles", 59,
        "A quiet diamond weave in heather and sand.",
        "Linen on the outside, feather on the inside, with a concealed zip along the lower edge.",
        (("Cover", "Linen"), ("Filling", "Feather"), ("Wash", "40 C")), 40,
        sizes=(("Square", "45 x 45 cm", "armchairs"), ("Long", "40 x 70 cm", "sofas")),
    ),
)  # fmt: skip
PRODUCTS_BY_SLUG = {product.slug: product for product in PRODUCTS}
FEATURED = ("ember-table-lamp", "tide-vase", "fjord-wool-throw")
NEW_ARRIVALS = ("arc-floor-lamp", "heather-cushion")

CUSTOMERS = (
    Customer(1, "Ingrid Solberg", "ingrid@post.example", "Bergen", "2021", "Prefers parcels left with the neighbour."),
    Customer(2, "Tobias Lindqvist", "tobias@post.example", "Malmo", "2022", "Asked twice about longer cables."),
    Customer(3, "Aino Laakso", "aino@post.example", "Turku", "2023", "Buys ceramics in pairs."),
)

ORDERS = (
    Order("NF-1048", "18 March", 1, "Paid", (("halo-pendant", 1), ("pebble-mug", 2))),
    Order("NF-1047", "17 March", 3, "Paid", (("tide-vase", 2),)),
    Order("NF-1046", "15 March", 2, "Packed", (("ember-table-lamp", 1),)),
    Order("NF-1045", "12 March", 1, "Shipped", (("fjord-wool-throw", 1), ("heather-cushion", 2))),
    Order("NF-1044", "9 March", 3, "Shipped", (("field-bowl", 1), ("pebble-mug", 4))),
)
RECENT_ORDERS = 3
ACCOUNT_CUSTOMER = 1

#: Rows of the back office catalogue that the shop does not sell yet.
DRAFTS = (("Lichen rug", "textiles", 420), ("Skerry plate", "ceramics", 31), ("Mast candlestick", "lighting", 76))
CATALOGUE_PAGE_ROWS = 4


@dataclass(frozen=True, slots=True)
class Item:
    """A row of the back office catalogue."""

    number: int
    name: str
    category: str
    price: int
    stock: int
    status: str
    line: str
    slug: str = ""


ITEMS = tuple(
    Item(number, p.name, p.category, p.price, p.stock, "On sale", p.line, p.slug)
    for number, p in enumerate(PRODUCTS, 1)
) + tuple(
    Item(number, name, category, price, 0, "Draft", "Not described yet.")
    for number, (name, category, price) in enumerate(DRAFTS, len(PRODUCTS) + 1)
)

QUESTIONS = (
    "How long does delivery take?",
    "Which woods and glazes do you use?",
    "Can I change my mind after ordering?",
    "Do you repair things?",
)
