"""A process that publishes into a bucket is killed at random moments: what was published stays whole."""

import os
import random
import time

import pytest

from index.store import Store
from index.store.checks import verify
from index.store.gc import collect
from tests.integration.test_store_crash import SITE, Publisher, check_complete, draft
from tests.s3_server import BUCKET, s3_server

KILLS = 6


@pytest.mark.timeout(120)
def test_a_killed_publisher_leaves_whole_versions_only(monkeypatch: pytest.MonkeyPatch) -> None:
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
        with monkeypatch.context() as later:  # ten minutes on, the killed ones' claims are nobody's
            later.setattr("index.store.objects.STALE_SECONDS", -10)
            last = store.publish(draft(store, "after"))
        assert store.numbers(SITE) == store.versions(SITE)
        assert last == store.head(SITE) > max(reported)
        collect(store)
        assert verify(store).problems == []
