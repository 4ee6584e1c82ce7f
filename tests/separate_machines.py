"""Machines of a cluster simulated on one host: each has a network, processes and a folder of its own.

The network cable of a machine can be pulled and plugged in again while its processes run. Its power can be cut: all its
processes end at once, without closing their connections, unlike a process that is killed alone. All machines share the
disks.

Machines are Linux namespaces, which require root.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import psutil

ROOT = Path(__file__).parents[1]
PYTHON = sys.executable
_MIB = 2**20
_PORT = 6379
#: Children of a process that ignores SIGCHLD do not become zombies.
_INIT = "trap '' CHLD; {prepare}; echo ready; exec sleep infinity"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def can_be_made() -> bool:
    """Return whether this process may create machines, and the required commands exist."""
    return os.geteuid() == 0 and all(shutil.which(command) for command in ("unshare", "nsenter", "ip"))


class _Namespaces:
    """Namespaces that end with their first process."""

    def __init__(self, *kinds: str, prepare: str = ":") -> None:
        command = ["unshare", *kinds, "--fork", "--kill-child=KILL", "sh", "-c", _INIT.format(prepare=prepare)]
        self._unshare = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._unshare.stdout is not None
        assert self._unshare.stdout.readline() == "ready\n"
        (self.init,) = psutil.Process(self._unshare.pid).children()

    def end(self) -> None:
        self._unshare.kill()
        self._unshare.communicate()
        psutil.wait_procs([self.init])


class Network:
    """A network switch and its machines. A context manager that ends all of them."""

    def __init__(self) -> None:
        # A short path: Ray makes sockets below it.
        self.ray_folder = Path(tempfile.mkdtemp(prefix="wg-", dir="/tmp"))
        self.environment = {
            "PYTHONPATH": str(ROOT),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
        }
        self.machines: list[Machine] = []
        self._made = 0
        self._switch = _Namespaces("--net")
        self.ip("link", "add", "switch", "type", "bridge")
        self.ip("link", "set", "switch", "up")

    def ip(self, *arguments: str) -> None:
        """Run `ip` at the switch."""
        _run("nsenter", f"--target={self._switch.init.pid}", "--net", "ip", *arguments)

    @property
    def switch_pid(self) -> int:
        """Return the id of a process in the network namespace of the switch."""
        return self._switch.init.pid

    def add(self) -> Machine:
        """A machine without Ray."""
        self._made += 1
        self.machines.append(Machine(self, self._made))
        return self.machines[-1]

    def head(self, environment: Mapping[str, str]) -> Machine:
        """A machine without CPUs for others that is the head of a new cluster."""
        machine = self.add()
        machine.ray(
            "--head", f"--port={_PORT}", "--num-cpus=0", "--include-dashboard=false", environment=environment
        )  # fmt: skip
        return machine

    def worker(self, head: Machine, *, cpus: int = 2) -> Machine:
        """A machine that belongs to the cluster of `head`."""
        machine = self.add()
        machine.ray(f"--address={head.cluster}", f"--num-cpus={cpus}", environment={})
        return machine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for machine in self.machines:
            machine.cut_power()
        self._switch.end()
        shutil.rmtree(self.ray_folder)


class Machine:
    """One machine, at `address`."""

    def __init__(self, network: Network, number: int) -> None:
        self.number, self.address = number, f"10.77.0.{number}"
        self.is_on = True
        self._network, self._port = network, f"port{number}"
        self._folder = network.ray_folder
        prepare = f"mount -t tmpfs ray {self._folder} && ip link set lo up"
        self._namespaces = _Namespaces("--net", "--mount", "--pid", "--mount-proc", prepare=prepare)
        own, switch = str(self._namespaces.init.pid), str(network.switch_pid)
        _run("ip", "link", "add", self._port, "netns", switch, "type", "veth", "peer", "name", "eth0", "netns", own)
        network.ip("link", "set", self._port, "master", "switch")
        self.plug_in()
        _run(*self._enter, "ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        _run(*self._enter, "ip", "link", "set", "eth0", "up")

    @property
    def cluster(self) -> str:
        """Return `RAY_ADDRESS` of the cluster whose head this machine is."""
        return f"{self.address}:{_PORT}"

    @property
    def _enter(self) -> tuple[str, ...]:
        return ("nsenter", f"--target={self._namespaces.init.pid}", "--net", "--mount", "--pid")

    def command(self, *command: str, **environment: str) -> list[str]:
        """Return a command line that runs on this machine, in the folder of this project."""
        variables = {**self._network.environment, **environment}
        return [*self._enter, "env", f"--chdir={ROOT}", *(f"{k}={v}" for k, v in variables.items()), *command]

    def ray(self, *arguments: str, environment: Mapping[str, str]) -> None:
        """Start Ray."""
        ray = [PYTHON, "-m", "ray.scripts.scripts", "start", f"--node-ip-address={self.address}"]
        shared = [f"--temp-dir={self._folder}", f"--object-store-memory={100 * _MIB}"]
        done = subprocess.run(
            self.command(*ray, *(shared if "--head" in arguments else shared[1:]), *arguments, **environment),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def processes(self, name: str) -> list[psutil.Process]:
        """Return the processes of this machine whose command line contains a name."""
        found = []
        for process in self._namespaces.init.children(recursive=True) if self.is_on else []:
            try:
                if name in " ".join(process.cmdline()):
                    found.append(process)
            except psutil.NoSuchProcess:
                continue
        return found

    def pull(self) -> None:
        """Pull its cable: no packet passes, and no connection is closed."""
        self._network.ip("link", "set", self._port, "down")

    def plug_in(self) -> None:
        """Plug its cable in again."""
        self._network.ip("link", "set", self._port, "up")

    def cut_power(self) -> None:
        """Kill all its processes at once, without closing their connections."""
        if self.is_on:
            self.pull()
            self._namespaces.end()
            self.is_on = False
