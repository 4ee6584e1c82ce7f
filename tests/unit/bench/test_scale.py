"""The simulation of bulk runs draws from measured distributions, and the plan computed from it is consistent."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import scale, scale_plan, scale_site
from tests.s3_server import BUCKET, s3_server
from tests.stores import draft
from waygraph.index.graph import Observation
from waygraph.index.store import Store

ONES = {symbol: scale_plan.Input(1.0, "", "") for symbol in ["c", "e", "v", "t", "b", "m", "k", "q", "p0", "p1"]}


@given(st.integers(0, 10**6), st.floats(1, 100))
def test_simulated_site_is_a_scaled_measured_site(number, shrink):
    shape = scale_site.drawn(number, seed=1, shrink=shrink)
    assert shape == scale_site.drawn(number, seed=1, shrink=shrink)
    assert shape.of in scale_site.measured()
    for states, depth in zip(shape.states, shape.of.depths, strict=True):
        assert states == max(1, round(depth.states / shrink))
    assert shape.seconds > 0
    assert shape.edges / sum(shape.states) == pytest.approx(shape.of.edges / shape.of.states, abs=0.5)


def test_unscaled_sites_take_the_measured_time_on_average():
    drawn = [scale_site.drawn(number, seed=1, shrink=1) for number in range(300)]
    measured = sum(shape.of.seconds for shape in drawn)
    assert sum(shape.seconds for shape in drawn) == pytest.approx(measured, rel=0.05)


def test_free_slot_waits_from_the_end_of_its_site_to_the_start_of_the_next():
    watch = scale.Watch(sites=4)
    watch.close()
    watch.began[7].extend([0.0, 0.1, 4.5, 6.0])  # two places
    watch.ended[7].extend([6.0, 4.0, 9.0, 9.0])
    assert watch.waits_of_explorers(at_once=2) == [0.5, 0.0]


def test_cpu_per_site_is_measured_between_two_samples():
    looks = [{"sites": 10, "cpu": {"publisher": 1.0}}, {"sites": 30, "cpu": {"publisher": 1.5}}]
    assert scale.per_site_ms(looks, "publisher") == pytest.approx(25)
    assert scale.per_site_ms(looks, "encoder") == 0


def test_memory_growth_and_lost_sites_are_reported_as_problems():
    row = {"sites": 1000, "cpu_growth": {"coordinator": 1.6, "publisher": 1.0}, "status": {"published": 1000}}
    assert scale.problems_of(row) == ["1000 sites: coordinator takes 1.6 times the CPU per site in the last third"]
    row = {**row, "cpu_growth": {"coordinator": 1.0}, "status": {"published": 999, "failed": 1}}
    assert len(scale.problems_of(row)) == 1


def test_results_of_other_sizes_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "RESULTS", tmp_path / "scale.json")
    scale.save([{"sites": 10, "shrink": 30.0, "is": "old"}, {"sites": 20, "shrink": 30.0}], {"states": 5})
    scale.save([{"sites": 10, "shrink": 30.0, "is": "new"}, {"sites": 20, "shrink": 1.0}])
    saved = json.loads((tmp_path / "scale.json").read_text())
    assert [(row["sites"], row["shrink"], row.get("is")) for row in saved["rows"]] == [
        (10, 30.0, "new"),
        (20, 30.0, None),
        (20, 1.0, None),
    ]
    assert saved["shop"] == {"states": 5}


@given(st.integers(1, 10**7), st.floats(1, 1000))
def test_needs_grow_with_sites_and_states_as_their_formulas_say(sites, states):
    one = {need.name: need.value for need in scale_plan.needs(ONES, sites=sites, states=states, days=1)}
    two = {need.name: need.value for need in scale_plan.needs(ONES, sites=2 * sites, states=states, days=1)}
    assert two == pytest.approx({name: 2 * value for name, value in one.items()})
    assert one["browsers"] == pytest.approx(sites * states / 3600)
    assert one["encoding screenshots"] == pytest.approx(sites * states / 3600)
    assert one["object store"] == pytest.approx(sites * states * 2 / 1e9)
    assert one["publishing"] == pytest.approx(sites * (1 + states) / 3.6e6)


def test_cost_is_the_sum_of_priced_resources():
    found = scale_plan.needs({**ONES, "b": replace(ONES["b"], value=0.0)}, sites=3_600_000, states=1, days=1)
    assert scale_plan.cost(found, {}) == 0
    assert scale_plan.cost(found, {"core_hour": 2}) == pytest.approx(2 * (1000 + 1 + 2))
    assert scale_plan.cost(found, {"gpu_hour": 3}) == pytest.approx(3000)
    assert scale_plan.cost(found, {"put_1000": 1, "head_1000": 1}) == pytest.approx(3600 * (3 + 25 + 3))


def test_the_table_names_a_source_for_every_input_of_a_formula():
    made = scale_plan.table(scale_plan.inputs(), sites=1_000_000, states=[30, 100], days=7, prices={"core_hour": 0.04})
    needs, sources = made.split("\n\n")
    symbols = {line.split("`")[1] for line in sources.splitlines()[2:]}
    assert symbols == ONES.keys()
    assert "cost, with core_hour=0.04" in needs
    assert all(line.split("|")[-2].strip() for line in sources.splitlines())


def test_publishing_to_a_bucket_needs_no_more_requests_than_planned():
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as server:
        store = Store.open(f"s3://{BUCKET}/plan/maps", create=True)
        one = draft(store)
        server.requests.clear()
        seen = {
            node_id: Observation(
                node_id, "http://a.example/", "t", (), *(store.blobs.put(f"{node_id}{k}".encode()) for k in "sda")
            )
            for node_id in one.graph.nodes
        }
        blobs = scale_plan.BLOBS_PER_STATE * len(seen)
        assert server.requests["PUT"] == blobs
        server.requests.clear()
        store.publish(replace(one, observations=seen))
        assert server.requests.total() <= blobs + scale_plan.REQUESTS_PER_VERSION
        assert server.requests["HEAD"] >= blobs
