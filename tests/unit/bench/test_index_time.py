"""The benchmark of `waygraph index` as a whole process."""

import subprocess
import sys

import psutil

from bench.index_time import CpuOfTree, summary


def test_medians_are_taken_of_phases_and_kinds_of_process():
    runs = [
        {"seconds": seconds, "cpu seconds": 2 * seconds, "phases": {"exploration": seconds}, "cpu": cpu}
        for seconds, cpu in ((10.0, {"encoder": 4.0}), (12.0, {"encoder": 5.0, "other": 1.0}), (20.0, {"encoder": 9.0}))
    ]
    found = summary(runs, cores=2)
    assert (found["seconds"], found["cpu seconds"], found["cpu seconds / cores"]) == (12.0, 24.0, 12.0)
    assert found["phases"] == {"exploration": 12.0}
    assert found["cpu"] == {"encoder": 5.0, "other": 0.0}


def test_cpu_time_of_processes_below_the_command_is_added_by_kind():
    busy = "import time; end = time.process_time() + 0.5\nwhile time.process_time() < end: pass\ninput()"
    with subprocess.Popen([sys.executable, "-c", busy, "ray::EncoderActor"], stdin=subprocess.PIPE) as child:
        cpu = CpuOfTree(psutil.Process())
        for _ in range(10_000):
            cpu.sample()
            if cpu.by_kind().get("encoder", 0.0) >= 0.5:
                break
        child.communicate(b"\n")
    assert cpu.by_kind()["encoder"] >= 0.5
