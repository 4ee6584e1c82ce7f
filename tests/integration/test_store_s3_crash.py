"""A process that publishes into a bucket is killed at random moments: published versions stay intact."""

import os
import random
import time

import pytest

from tests.integration.test_store_crash import SITE, Publisher, check_complete, draft
from tests.s3_server import BUCKET, s3_server
from waygraph.index.store import Store
from waygraph.index.store.upkeep.checks import verify
from waygraph.index.store.upkeep.gc import collect_garbage

pytestmark = pytest.mark.extended

KILLS = 6


@pytest.mark.timeout(120)
def test_killed_publisher_leaves_complete_versions_only(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(7)
    with s3_server(monkeypatch):
        location = f"s3://{BUCKET}/crashes"
        aws = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        reported: list[int] = []
        for _ in range(KILLS):
            publisher = Publisher(location, aws)
            reported.append(publisher.next_report())
            time.sleep(rng.uniform(0, 0.5))  # not a wait: a random moment
            reported += publisher.kill()
        store = Store.open(location, create=True)
        check_complete(store)
        assert set(reported) <= set(store.versions(SITE))
        for version in reported:
            check_complete(store, version)
        with monkeypatch.context() as later:  # ten minutes later the claims of the killed processes have expired
            later.setattr("waygraph.index.store.backends.s3.STALE_SECONDS", -10)
            last = store.publish(draft(store, "after"))
        assert store.numbers(SITE) == store.versions(SITE)
        assert last == store.head(SITE) > max(reported)
        collect_garbage(store)
        assert verify(store).problems == []
