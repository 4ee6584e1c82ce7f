"""Run a command under a seccomp profile in the container runtimes' format, without a container.

python seccomp_exec.py PROFILE.json COMMAND...: libseccomp builds the filter as a container runtime would. Root becomes
nobody first: Chromium has no sandbox for root.
"""

import ctypes
import ctypes.util
import json
import os
import sys

_PR_SET_NO_NEW_PRIVS = 38
NOBODY = 65534
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_OPERATORS = {"SCMP_CMP_NE": 1, "SCMP_CMP_EQ": 4}
_UNKNOWN = -1  # a system call that this libseccomp does not know


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("datum_a", ctypes.c_uint64),
        ("datum_b", ctypes.c_uint64),
    )


def load(profile):
    """Restrict this process, and all that it starts, to what the profile allows."""
    library = ctypes.CDLL(ctypes.util.find_library("seccomp") or "libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    # From the profile: anything else would be another filter than the one that is shipped.
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    filter_ = ctypes.c_void_p(library.seccomp_init(_ERRNO | profile["defaultErrnoRet"]))
    for rule in profile["syscalls"]:
        assert rule["action"] == "SCMP_ACT_ALLOW"
        compared = [_Comparison(a["index"], _OPERATORS[a["op"]], a["value"], 0) for a in rule.get("args", ())]
        for name in rule["names"]:
            number = library.seccomp_syscall_resolve_name(name.encode())
            if number == _UNKNOWN:
                continue  # as container runtimes do
            array = (_Comparison * len(compared))(*compared)
            failed = library.seccomp_rule_add_array(filter_, _ALLOW, number, len(compared), array)
            if failed:
                raise OSError(-failed, f"{name}: {os.strerror(-failed)}")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS) failed")
    if failed := library.seccomp_load(filter_):
        raise OSError(-failed, os.strerror(-failed))


if __name__ == "__main__":
    with open(sys.argv[1]) as file:  # noqa: PTH123 - pathlib would be one import more under a filter
        wanted = json.load(file)
    load(wanted)
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - what it is for
