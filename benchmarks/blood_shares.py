# SPDX-License-Identifier: BSD-3-Clause
"""Draw the shares of a step's stages over the hematocrit from results of `seiche bench blood`, one panel each.

`python benchmarks/blood_shares.py FIGURE NAME=RESULT.json ...`
"""

from __future__ import annotations

import sys
from pathlib import Path

from seiche.bench.blood import BloodRow, draw
from seiche.bench.results import read_rows


def main(figure: str, *results: str) -> None:
    """Draw `figure` from results given as NAME=FILE."""
    named = (result.split("=", 1) for result in results)
    draw(Path(figure), {name: read_rows(Path(file), BloodRow, "a blood benchmark") for name, file in named})


if __name__ == "__main__":
    main(*sys.argv[1:])
