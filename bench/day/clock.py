"""The time of day of the services, shifted without touching the clock of the machine."""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from pathlib import Path

_SOURCE = Path(__file__).with_name("clock_shift.c")


class ShiftedClock:
    """A clock for the processes that are started with its `environment`; needs a C compiler.

    Debian's libfaketime 0.9.10 cannot be used: while it leaves the monotonic clock alone, it passes a deadline that it
    never set to `clock_nanosleep`, so that `time.sleep` fails with EINVAL.

    Parameters
    ----------
    folder
        Where the library and the shift are kept.
    """

    def __init__(self, folder: Path) -> None:
        library, shift = folder / "clock_shift.so", folder / "clock_shift"
        compiler = shutil.which("cc")
        assert compiler is not None, "no C compiler: apt-get install gcc"
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, _SOURCE], check=True)
        shift.write_bytes(bytes(8))
        with shift.open("r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), 8)
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_SHIFT_FILE": str(shift)}

    def shift(self, seconds: float) -> None:
        """Set the time of day to so many seconds after the real one, for all processes at once."""
        self._mapped[:] = struct.pack("d", seconds)
