# SPDX-License-Identifier: BSD-3-Clause
"""Row sets of all solvers on several GPUs of one host, or small ones on several ranks of a CPU.

    python -m benchmarks.several_gpus flow-weak blood-strong --ranks 2 --device cuda --label h100x2 --folder results

Each set runs with mpiexec, measures one rank and all ranks in the same call, and stores FOLDER/SET-LABEL.json. Loads
grow in three directions: 2x1x1 on two ranks, 2x2x1 on four, 2x2x2 on eight. `choice`, `predict` and `collectives` need
the set `machine` first. A small trial on a CPU: `--device cpu --ranks 2 --scale 0.125 --seconds 0.2`.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.several_gpus.row_sets import ROW_SETS, Command, Plan
from seiche.bench.results import show_lines

TRANSPORTS = {"cuda": ("peer", "nccl", "host"), "cpu": ("peer", "host")}


def run(command: Command, launcher: Sequence[str], limit: float) -> str:
    """Run a command and return "done", or in what way it failed."""
    words = [*launcher, "-n", str(command.ranks), *command.words] if command.ranks else list(command.words)
    print(f"\n$ {shlex.join(words)}", flush=True)
    process = subprocess.Popen(words, start_new_session=True)
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        return f"longer than {limit:.0f} s"
    return "done" if status == 0 else f"status {status}"


def result_line(path: Path, ranks: int) -> tuple[str, str]:
    """Return the number of rows in a file and their largest efficiency on all ranks, with its transport."""
    rows = json.loads(path.read_text()).get("rows", []) if path.exists() else []
    efficiencies = [(_efficiency(row), row.get("transport", "")) for row in rows if row.get("ranks") == ranks]
    best = max((item for item in efficiencies if item[0] > 0.0), default=None)
    return str(len(rows)), "" if best is None else f"{best[0]:.3f} {best[1]}"


def _efficiency(row: dict[str, object]) -> float:
    if "milliseconds_one_rank" in row:
        return float(row["milliseconds_one_rank"]) / float(row["milliseconds"])  # type: ignore[arg-type]
    return float(row.get("efficiency", 0.0))  # type: ignore[arg-type]


def parsed() -> argparse.Namespace:
    """Return the arguments of the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", metavar="SET", help=f"all, or some of {', '.join(ROW_SETS)}")
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--device", choices=tuple(TRANSPORTS), default="cuda")
    parser.add_argument("--launcher", default="mpiexec", help='such as "mpirun --bind-to none"')
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the edges of all boxes")
    parser.add_argument("--seconds", type=float, default=0.5, help="duration of each measurement")
    parser.add_argument("--transport", action="append", help="peer, nccl and host by default")
    parser.add_argument("--threads", type=int, help="threads of a rank (cpu)")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a command is ended")
    parser.add_argument("--label", help="end of the file names; by default device and ranks")
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    unknown = [name for name in options.sets if name not in (*ROW_SETS, "all")]
    if unknown:
        parser.error(f"{unknown[0]!r} is not all, or one of {', '.join(ROW_SETS)}")
    if options.ranks < 1:
        parser.error(f"--ranks {options.ranks}: expected at least one")
    return options


def main() -> int:
    """Run the requested row sets; return 1 if one of them failed."""
    options = parsed()
    options.folder.mkdir(parents=True, exist_ok=True)
    plan = Plan(
        device=options.device,
        ranks=options.ranks,
        scale=options.scale,
        seconds=options.seconds,
        folder=options.folder,
        label=options.label or f"{options.device}x{options.ranks}",
        options=("--threads", str(options.threads)) if options.threads else (),
        transports=tuple(options.transport or TRANSPORTS[options.device]),
        launcher=tuple(shlex.split(options.launcher)),
    )
    lines, failed = [], False
    for name in ROW_SETS if "all" in options.sets else options.sets:
        begin, states = time.perf_counter(), []
        for command in ROW_SETS[name](plan):
            states.append(run(command, plan.launcher, options.limit))
        state = next((state for state in states if state != "done"), "done")
        failed |= state != "done"
        seconds = f"{time.perf_counter() - begin:.0f}"
        lines.append((name, state, seconds, *result_line(plan.path(name), options.ranks)))
    print()
    headings = ("row set", "state", "seconds", "rows", "largest efficiency")
    show_lines(f"{plan.ranks} ranks, {plan.device}, {plan.folder}", headings, lines, text_columns=(0, 1, 4))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
