# SPDX-License-Identifier: BSD-3-Clause
"""The command `seiche`, also as `python -m seiche`."""

from __future__ import annotations

import gc
import sys

from seiche import __version__
from seiche.start import rare_collections, signals_during_start


def main() -> int:
    """Run the command line of the process and return the exit status; the version alone needs no other module."""
    if sys.argv[1:] == ["--version"]:
        print(f"seiche {__version__}")
        return 0
    with signals_during_start("seiche"):
        with rare_collections():
            from seiche.cli import main as run_command
        try:
            return run_command()
        finally:
            gc.freeze()  # no search for cycles of objects when the interpreter ends, which takes a tenth of a second


if __name__ == "__main__":
    sys.exit(main())
