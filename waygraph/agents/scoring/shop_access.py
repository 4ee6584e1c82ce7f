"""Access to the API of a Magento shop, which a few page targets of WebArena's shopping tasks read."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from pydantic import SecretStr

from waygraph.core.errors import SiteUnreachable
from waygraph.core.settings import ShopSettings

_TIMEOUT_SECONDS = 30.0


#: What is missing without an account.
SETTINGS_NEEDED = "WAYGRAPH_AGENTS__SHOP__USER and WAYGRAPH_AGENTS__SHOP__PASSWORD, or WAYGRAPH_AGENTS__SHOP__TOKEN"


def shop_access(settings: ShopSettings, start_url: str) -> ShopAccess | None:
    """Return the access that settings describe; None: they name neither an account nor a token.

    Parameters
    ----------
    settings
        Account or token of the shop's administrator.
    start_url
        Page that the task starts with, whose host is the shop's unless the settings name another.

    Returns
    -------
    ShopAccess or None
        The access. Nothing was requested yet.
    """
    if not settings.token.get_secret_value() and not settings.user:
        return None
    parts = urlsplit(start_url)
    return ShopAccess(
        settings.url or f"{parts.scheme}://{parts.netloc}", settings.user, settings.password, settings.token
    )


class ShopAccess:
    """Reads orders and reviews as an administrator of the shop. Without a token, one is requested at the first call.

    Parameters
    ----------
    base_url
        URL of the shop.
    user
        Name of the administrator.
    password
        Password of the administrator.
    token
        Access token, in place of name and password; empty: there is none.
    """

    def __init__(self, base_url: str, user: str, password: SecretStr, token: SecretStr | None = None) -> None:
        self._base_url = base_url.rstrip("/")
        self._user = user
        self._password = password
        self._token = token.get_secret_value() if token is not None else ""

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
