"""Run a command with Ceph's object gateway as the S3 server of the tests.

    python -m bench.object_gateway pytest tests/unit/index/store

A monitor, one disk in memory and the gateway run in a folder that is deleted afterwards, on ports of loopback. It needs
root and Debian's packages ceph-mon, ceph-osd, ceph-common and radosgw.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_PACKAGES = {"ceph-mon": "ceph-mon", "ceph-osd": "ceph-osd", "ceph": "ceph-common", "radosgw": "radosgw"}
_PATIENCE_S = 120
_CONF = """[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{monitor}
keyring = {folder}/keyring
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 2
osd pool default pgp num = 2
mon allow pool size one = true
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 1073741824
mon data = {folder}/mon
osd data = {folder}/osd
run dir = {folder}
admin socket = {folder}/$name.asok
pid file = {folder}/$name.pid
log file = {folder}/$name.log
mon cluster log file = {folder}/cluster.log
setuser match path = /none
ms bind ipv6 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
rgw frontends = beast endpoint=127.0.0.1:{gateway}
"""


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


@contextmanager
def gateway() -> Iterator[str]:
    """Run the gateway for the duration of the block; it knows the key `key` with the secret `secret`.

    Yields
    ------
    str
        URL of the gateway.
    """
    with tempfile.TemporaryDirectory(prefix="ceph") as name, ExitStack() as stack:
        folder, port, monitor, fsid = Path(name), _free_port(), _free_port(), str(uuid.uuid4())
        (folder / "osd").mkdir()
        conf = folder / "ceph.conf"
        conf.write_text(_CONF.format(fsid=fsid, folder=folder, monitor=monitor, gateway=port))
        environment = {**os.environ, "CEPH_CONF": str(conf)}

        def run(*command: str) -> None:
            subprocess.run(command, env=environment, check=True, capture_output=True, timeout=_PATIENCE_S)

        def start(*command: str) -> None:
            with (folder / f"{command[0]}.out").open("w") as output:
                process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
            stack.callback(process.wait)
            stack.callback(process.terminate)

        keyring, monmap = str(folder / "keyring"), str(folder / "monmap")
        run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
        for who in ("client.admin", "client.rgw", "osd.0"):
            rights = ("--cap", "mon", "allow *", "--cap", "osd", "allow *")
            run("ceph-authtool", keyring, "--gen-key", "-n", who, *rights)
        run("monmaptool", "--create", "--addv", "a", f"[v2:127.0.0.1:{monitor}]", "--fsid", fsid, monmap)
        run("ceph-mon", "--mkfs", "-i", "a", "--monmap", monmap, "--keyring", keyring)
        start("ceph-mon", "-i", "a", "-f")
        disk = str(uuid.uuid4())
        run("ceph", "osd", "new", disk, "0")
        run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", disk)
        start("ceph-osd", "-i", "0", "-f")
        run("ceph", "osd", "crush", "add", "osd.0", "1.0", "root=default", "host=here")
        key = ("--access-key=key", "--secret-key=secret")
        run("radosgw-admin", "user", "create", "--uid=tests", "--display-name=tests", *key)
        start("radosgw", "-n", "client.rgw", "-f")
        url = f"http://127.0.0.1:{port}"
        _wait(url)
        yield url


def _wait(url: str) -> None:
    pause = threading.Event()
    for _ in range(_PATIENCE_S):
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310 - of this module
        except (urllib.error.URLError, OSError):
            pause.wait(1)
        else:
            return
    sys.exit("error: the gateway does not answer")


def main() -> None:
    missing = sorted(package for program, package in _PACKAGES.items() if shutil.which(program) is None)
    if missing:
        sys.exit(f"error: missing: {' '.join(missing)}\n  hint: on Debian: apt-get install {' '.join(missing)}")
    with gateway() as url:
        # This version of Ceph knows no checksums at the end of an upload.
        environment = {**os.environ, "WAYGRAPH_S3": url, "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required"}
        code = subprocess.run(sys.argv[1:], env=environment, check=False).returncode
    sys.exit(code)


if __name__ == "__main__":
    main()
