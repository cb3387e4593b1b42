# SPDX-License-Identifier: BSD-3-Clause
"""The command `seiche`, also as `python -m seiche`."""

from __future__ import annotations

import sys

from seiche import __version__
from seiche.start import signals_during_start


def main() -> int:
    """Run the command line of the process and return the exit status; the version alone needs no other module."""
    if sys.argv[1:] == ["--version"]:
        print(f"seiche {__version__}")
        return 0
    with signals_during_start("seiche"):
        from seiche.cli import main as run_command

        return run_command()


if __name__ == "__main__":
    sys.exit(main())
