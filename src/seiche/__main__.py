# SPDX-License-Identifier: BSD-3-Clause
"""The command `seiche`, also as `python -m seiche`."""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType

from seiche import __version__

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: Variables in which launchers give a process its rank.
_RANK_VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID")
#: Seconds in which a launcher can forward the message: it stops forwarding when a rank ends.
_FORWARD_SECONDS = 0.2


def main() -> int:
    """Run the command line of the process and return the exit status; the version alone needs no other module."""
    if sys.argv[1:] == ["--version"]:
        print(f"seiche {__version__}")
        return 0
    earlier = {number: signal.signal(number, _end_start) for number in _SIGNALS}
    from seiche.cli import main as run_command

    try:
        return run_command()
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _end_start(number: int, frame: FrameType | None) -> None:
    """End the process at once, while it imports modules; the message is printed by one rank."""
    rank = next((os.environ[name] for name in _RANK_VARIABLES if name in os.environ), None)
    if rank in (None, "0"):
        name = signal.Signals(number).name
        os.write(2, f"seiche: stopped by signal {name} during start-up; nothing was written\n".encode())
    if rank is not None:  # only an end by a signal makes a launcher end the ranks that wait for this one
        time.sleep(_FORWARD_SECONDS if rank == "0" else 3 * _FORWARD_SECONDS)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
