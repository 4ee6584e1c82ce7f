"""State of the demo shop that requests may change: one visitor, no sessions, lost when the server stops."""

from __future__ import annotations

from dataclasses import dataclass, field

from waygraph.demo_site.catalogue import ACCOUNT_CUSTOMER, CUSTOMERS, ITEMS, ORDERS, Item

OWNER = CUSTOMERS[ACCOUNT_CUSTOMER - 1]
ADDRESSES = (
    ("Home", "Strandgaten 14, 5013 Bergen"),
    ("Cabin", "Fjellveien 3, 5700 Voss"),
)


@dataclass
class ShopState:
    """Everything that requests may change. The pages show every change."""

    cart: dict[str, int] = field(default_factory=lambda: {"pebble-mug": 2, "tide-vase": 1})
    favourites: set[str] = field(default_factory=set)
    signed_in: bool = True
    profile: dict[str, str] = field(
        default_factory=lambda: {"name": OWNER.name, "email": OWNER.email},
    )
    addresses: list[tuple[str, str]] = field(default_factory=lambda: list(ADDRESSES))
    items: dict[int, Item] = field(default_factory=lambda: {item.number: item for item in ITEMS})
    statuses: dict[str, str] = field(default_factory=lambda: {order.number: order.status for order in ORDERS})
    settings: dict[str, str] = field(
        default_factory=lambda: {"name": "Northfold", "currency": "EUR", "email": "hello@northfold.example"}
    )
    holiday: bool = False
    letters: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    purchases: int = 0

    @property
    def in_cart(self) -> int:
        """Number of items in the cart."""
        return sum(self.cart.values())
