# SPDX-License-Identifier: BSD-3-Clause
"""Quality of the predicted strategy for Alltoall(v) on Summit, by public measurements of BenchPress.

`python -m benchmarks.summit_choice FOLDER [--json FILE]`, where FOLDER has the outputs `all_to_all_N.*.out` and
`all_to_all_v_N.*.out` for N nodes with 6 GPUs and 36 processes each. The machine is the built-in one, whose parameters
were measured with single messages and copies. The time of a strategy is its minimum over the jobs.

In an Alltoall, helper processes send a sixth of each message, at least one word; smaller sizes are left out.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from seiche.bench import results
from seiche.bench.choice import ACCEPTABLE_RATIO, ChoiceRow
from seiche.errors import FormatError
from seiche.io.formats.benchpress import WORD, read_collectives
from seiche.machine.laws.file import read_machine
from seiche.machine.laws.strategies import Paths, Topology, exchange_time

GPUS, SOCKETS, PROCESSES = 6, 2, 6
#: Patterns by the number of a section in the file: of Alltoall and of Alltoallv.
PATTERNS = {"": ("alltoall",), "v_": ("alltoallv of the library", "alltoallv by messages")}
_NAME = re.compile(r"all_to_all_(v_)?(\d+)\.\d+\.out$")


def measured(folder: Path) -> dict[tuple[str, int], dict[str, npt.NDArray[np.float64]]]:
    """Return the minimum seconds over all jobs by pattern and number of nodes, then by strategy.

    Raises:
        FormatError: a file is not in the format, or there is none.
    """
    rows: dict[tuple[str, int], dict[str, list[npt.NDArray[np.float64]]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.glob("all_to_all_*.out")):
        match = _NAME.match(path.name)
        if match is None:
            raise FormatError(path, "name", "expected all_to_all_N.JOB.out or all_to_all_v_N.JOB.out")
        for pattern, section in zip(PATTERNS[match[1] or ""], read_collectives(path), strict=True):
            for strategy, seconds in section.items():
                rows[pattern, int(match[2])][strategy].append(seconds)
    if not rows:
        raise FormatError(folder, "folder", "no outputs of all_to_all")
    return {key: {name: np.min(times, axis=0) for name, times in of_key.items()} for key, of_key in rows.items()}


def choices(folder: Path, paths: Paths) -> Iterator[ChoiceRow]:
    """Yield the choice for each pattern, number of nodes and size, with measured and predicted seconds."""
    for (pattern, nodes), times in sorted(measured(folder).items()):
        layout = Topology(nodes, GPUS, SOCKETS, PROCESSES)
        for index, size in enumerate(WORD * 2 ** np.arange(len(times["device"]))):
            if pattern == "alltoall" and size < WORD * PROCESSES:
                continue
            seconds = {name: float(values[index]) for name, values in times.items()}
            # Spectrum MPI, like Open MPI, exchanges pairwise in an Alltoallv, empty messages included.
            options = {"whole_messages": pattern != "alltoall", "empty_messages": pattern.endswith("library")}
            predicted = {
                name: exchange_time(name, paths, layout, float(size), **options)  # type: ignore[arg-type]
                for name in seconds
            }
            chosen = min(predicted, key=predicted.__getitem__)
            cost = seconds[chosen] / min(seconds.values())
            yield ChoiceRow(f"{pattern}, {nodes} nodes", int(size), seconds, predicted, chosen, cost)


def main() -> None:
    """Print the share of good choices by pattern, and store the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = list(choices(options.folder, read_machine("summit").strategy_paths()))
    for pattern in dict.fromkeys(row.pattern.rpartition(",")[0] for row in rows):
        costs = [row.cost for row in rows if row.pattern.rpartition(",")[0] == pattern]
        good = sum(cost <= ACCEPTABLE_RATIO for cost in costs)
        print(f"{pattern}: {good} of {len(costs)} within {ACCEPTABLE_RATIO:g} of the best ({good / len(costs):.1%})")
    results.store(options.json, results.document("choice", "Summit, 6 V100 per node (BenchPress)", rows))


if __name__ == "__main__":
    main()
