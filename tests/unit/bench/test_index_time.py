"""The benchmark of `waygraph index` as a whole process."""

from bench.index_time import summary


def test_medians_are_taken_of_phases_and_kinds_of_process():
    runs = [
        {"seconds": seconds, "cpu seconds": 2 * seconds, "phases": {"exploration": seconds}, "cpu": cpu}
        for seconds, cpu in ((10.0, {"encoder": 4.0}), (12.0, {"encoder": 5.0, "other": 1.0}), (20.0, {"encoder": 9.0}))
    ]
    found = summary(runs, cores=2)
    assert (found["seconds"], found["cpu seconds"], found["cpu seconds / cores"]) == (12.0, 24.0, 12.0)
    assert found["phases"] == {"exploration": 12.0}
    assert found["cpu"] == {"encoder": 5.0, "other": 0.0}
