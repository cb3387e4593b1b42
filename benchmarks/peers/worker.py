# SPDX-License-Identifier: BSD-3-Clause
"""A process that measures one program on one work, once for each line that it reads.

    python -m benchmarks.peers.worker PROGRAM WORK DEVICE THREADS SECONDS

WORK is a `Work` as JSON. The first line of the answer names the version, or the reason why the program cannot run; each
later line is a figure with details, as JSON. All that the program prints goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from benchmarks.peers.program import Place, Program, UnavailableError
from benchmarks.peers.works import MODULES, Work


def main(program: str, work: str, device: str, threads: str, seconds: str) -> None:
    """Open the program, then answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    description = Work(**json.loads(work))
    module = importlib.import_module(MODULES[description.kind])
    try:
        place = Place(device, int(threads), float(seconds))
        ready: Program = module.PROGRAMS[program](description.parameters, place)
    except UnavailableError as reason:
        answers.write(json.dumps({"unavailable": str(reason)}) + "\n")
        return
    answers.write(json.dumps({"version": ready.version}) + "\n")
    for _ in sys.stdin:
        figure, details = ready.measure()
        answers.write(json.dumps({"figure": figure, "details": dict(details)}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
