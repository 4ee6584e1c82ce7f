"""The kept replies of a language model describe the demo shop as it is explored today."""

from bench.retrieval.with_model import described
from waygraph.index.store import Store


def test_kept_replies_are_about_the_pages_of_the_demo_shop(shop, shop_store):
    version = Store.open(str(shop_store)).read(shop.capture.site)
    asked = described("shop", version)
    assert len(asked.failures) <= 0.1 * len(version.observations)
    about = next(node_id for node_id, seen in version.observations.items() if seen.url.endswith("/about"))
    assert "behind this store" in " ".join(asked.descriptions[about].questions)
