"""Access to the API of a Magento shop, which a few page targets of WebArena's shopping tasks read."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
from pydantic import SecretStr

from waygraph.core.errors import SiteUnreachable

_TIMEOUT_SECONDS = 30.0


class ShopAccess:
    """Reads orders and reviews as an administrator of the shop. A token is requested at the first call.

    Parameters
    ----------
    base_url
        URL of the shop.
    user
        Name of the administrator.
    password
        Password of the administrator.
    """

    def __init__(self, base_url: str, user: str, password: SecretStr) -> None:
        self._base_url = base_url.rstrip("/")
        self._user = user
        self._password = password
        self._token = ""

    async def latest_order_url(self) -> str:
        """Return the URL of the page of the latest order, as its customer sees it."""
        answer = await self._get(
            "/rest/V1/orders",
            {
                "searchCriteria[sortOrders][0][field]": "created_at",
                "searchCriteria[sortOrders][0][direction]": "DESC",
                "searchCriteria[pageSize]": "1",
            },
        )
        try:
            number = int(answer["items"][0]["increment_id"])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise SiteUnreachable(f"The shop {self._base_url} names no latest order.") from error
        return f"{self._base_url}/sales/order/view/order_id/{number}/"

    async def latest_review_author(self, sku: str) -> str:
        """Return the nickname of the author of a product's latest review; empty without reviews."""
        review = await self._latest_review(sku)
        return str(review["nickname"]) if review else ""

    async def latest_review_rating(self, sku: str) -> str:
        """Return the rating of a product's latest review, in percent; empty without reviews."""
        review = await self._latest_review(sku)
        try:
            return str(review["ratings"][0]["percent"]) if review else ""
        except (KeyError, IndexError, TypeError) as error:
            raise SiteUnreachable(f"The latest review of {sku} has no rating.") from error

    async def _latest_review(self, sku: str) -> dict[str, Any]:
        reviews = await self._get(f"/rest/V1/products/{quote(sku, safe='')}/reviews", {})
        return reviews[-1] if reviews else {}

    async def _get(self, path: str, query: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
        try:
            async with httpx.AsyncClient(timeout=_TIMEOUT_SECONDS) as client:
                if not self._token:
                    account = {"username": self._user, "password": self._password.get_secret_value()}
                    url = f"{self._base_url}/rest/default/V1/integration/admin/token"
                    self._token = (await client.post(url, json=account)).raise_for_status().json()
                headers = {"Authorization": f"Bearer {self._token}"}
                return (
                    (await client.get(self._base_url + path, params=query, headers=headers)).raise_for_status().json()
                )
        except (httpx.HTTPError, ValueError) as error:
            raise SiteUnreachable(
                f"The API of the shop {self._base_url} did not answer: {type(error).__name__}.",
                hint="Check its URL and the administrator's account.",
            ) from error
