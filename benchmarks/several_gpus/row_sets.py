# SPDX-License-Identifier: BSD-3-Clause
"""The row sets by name: the commands of each, of which the last one stores its rows as JSON."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from seiche.bench.splits import Split, split_name, split_of

#: Edges of cubes are multiples of this, so that every cut is one between tiles.
_TILE = 8


@dataclass(frozen=True)
class Plan:
    """What all row sets have in common.

    Attributes:
        device: "cuda" or "cpu".
        ranks: number of ranks, one for each GPU.
        scale: factor of the edges of boxes; 1 for GPUs of 80 GB.
        seconds: duration of each measurement.
        folder: folder for the results.
        label: end of the names of the results, such as "h100x2".
        options: further options of the commands, such as the number of threads.
        transports: transports that are compared.
        launcher: words that start the ranks, before their number.
    """

    device: str
    ranks: int
    scale: float
    seconds: float
    folder: Path
    label: str
    options: tuple[str, ...] = ()
    transports: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ("mpiexec",)

    def path(self, name: str) -> Path:
        """Return the file of a row set."""
        return self.folder / f"{name}-{self.label}.json"

    def edge(self, full: int, multiple: int = _TILE) -> int:
        """Return the edge of a cube, `full` on a GPU, as a multiple of a number."""
        return max(multiple, round(full * self.scale / multiple) * multiple)


@dataclass(frozen=True)
class Command:
    """A command: its words after the launcher, and its number of ranks; 0 for a process without launcher."""

    words: tuple[str, ...]
    ranks: int


#: A function that returns the commands of a row set.
RowSet = Callable[[Plan], list[Command]]


def _bench(plan: Plan, name: str, *words: object, target: str, ranks: int | None = None) -> Command:
    """Return `seiche bench NAME WORDS` on all ranks, which stores its rows as the row set `target`."""
    common = ["--device", plan.device, "--json", plan.path(target)]
    command = (sys.executable, "-m", "seiche", "bench", name, *map(str, (*words, *common)))
    return Command(command, plan.ranks if ranks is None else ranks)


def _each(option: str, values: tuple[object, ...]) -> list[object]:
    return [word for value in values for word in (option, value)]


def _one_and_all(plan: Plan) -> list[object]:
    return _each("--ranks", tuple(dict.fromkeys((1, plan.ranks))))


def splits_of(ranks: int) -> list[Split]:
    """Return the cuts to compare: a row, a plane, and the most even one: 8x1x1, 4x2x1, 2x2x2."""
    splits: list[Split] = [(ranks, 1, 1)]
    if ranks % 2 == 0 and ranks > 2:
        splits.append((ranks // 2, 2, 1))
    return list(dict.fromkeys([*splits, split_of(ranks)]))


def flow(name: str, *words: object, full: int, partitions: tuple[object, ...], precision: str = "float32") -> RowSet:
    """Return a row set of `seiche bench flow`; `full` is the size of the domain on a GPU."""

    def commands(plan: Plan) -> list[Command]:
        size = plan.edge(full) if "box" in words else max(1, round(full * plan.scale**3))
        options = ["--size", size, "--layout", "tiles-8", "--precision", precision, "--seconds", plan.seconds]
        options += _each("--partition", partitions) + _each("--transport", plan.transports) + _one_and_all(plan)
        return [_bench(plan, "flow", *words, *options, *plan.options, target=name)]

    return commands


def blood(name: str, *words: object, load: str, support: int, partition: str = "bisection") -> RowSet:
    """Return a row set of `seiche bench blood`, with a load of bench.blood_ranks or a cube of `load` sites per edge."""

    def commands(plan: Plan) -> list[Command]:
        sizes: list[object] = ["--load", load]
        if not load.isdecimal() and plan.scale != 1.0:
            coarse = load == "coarse"
            sizes = ["--size", plan.edge(272 if coarse else 256, 16), "--spacing", 1.0 if coarse else 0.25]
            sizes += ["--vertices", 162 if coarse else 642]
        elif load.isdecimal():
            sizes = ["--size", max(32, plan.edge(int(load), 16)), "--spacing", 0.25]
        steps = ["--steps", 256 if plan.device == "cuda" else 4]
        options = [*sizes, "--support", support, "--partition", partition, *steps, *_one_and_all(plan)]
        return [
            _bench(plan, "blood", *words, *options, *_each("--transport", plan.transports), *plan.options, target=name)
        ]

    return commands


def ultrasound(name: str, *, overlap: int, full: int = 512) -> RowSet:
    """Return a row set of `seiche bench ultrasound` with full physics; overlap 0 is the global basis."""

    def commands(plan: Plan) -> list[Command]:
        splits = splits_of(plan.ranks)[: None if overlap else 1]
        options: list[object] = ["--size", plan.edge(full, 32), "--physics", "full", "--overlap", overlap]
        options += ["--seconds", plan.seconds, "--ranks", plan.ranks]
        options += _each("--split", tuple(map(split_name, splits))) + _each("--transport", plan.transports)
        return [_bench(plan, "ultrasound", *options, *plan.options, target=name)]

    return commands


def waves(name: str, *words: object, medium: str) -> RowSet:
    """Return a row set of `seiche bench waves` with and without overlap of messages."""

    def commands(plan: Plan) -> list[Command]:
        options: list[object] = ["--size", plan.edge(32, 4), "--medium", medium, "--precision", "float32"]
        options += ["--overlap", "on", "--overlap", "off", "--seconds", plan.seconds]
        return [
            _bench(plan, "waves", *words, *options, *_each("--transport", plan.transports), *plan.options, target=name)
        ]

    return commands


def flow_halo(plan: Plan) -> list[Command]:
    """Return the command that times messages of about 64 KiB in slabs."""
    script, target = Path(__file__).parents[1] / "flow_halo.py", plan.path("flow-halo")
    words = (sys.executable, script, "--device", plan.device, "--json", target)
    steps = () if plan.device == "cuda" else ("--steps", 16)
    return [Command(tuple(map(str, (*words, *steps, *_each("--transport", plan.transports)))), plan.ranks)]


def flow_tree(plan: Plan) -> list[Command]:
    """Return the command that runs an artery tree on one and on all ranks, without and with output."""
    words = (sys.executable, "-m", "benchmarks.several_gpus.tree", "--device", plan.device, "--ranks", plan.ranks)
    target = ("--sites", 2e7 * plan.scale**3, "--json", plan.path("flow-tree"))
    return [Command(tuple(map(str, (*words, *target, "--launcher", shlex.join(plan.launcher)))), 0)]


def machine(plan: Plan) -> list[Command]:
    """Return the command that measures the machine, for `predict`, `choice` and `collectives`."""
    return [_bench(plan, "machine", "--seconds", max(1.0, 40 * plan.seconds), "--name", plan.label, target="machine")]


def choice(plan: Plan) -> list[Command]:
    """Return the command that compares chosen transports with the fastest ones."""
    sizes = _each("--size", tuple(16**k for k in range(1, 7)))
    return [_bench(plan, "choice", plan.path("machine"), *sizes, target="choice")]


def predict(plan: Plan) -> list[Command]:
    """Return the commands that compare predicted and measured times on one and on all ranks."""
    options = ("--machine", plan.path("machine"), "--seconds", plan.seconds)
    one = replace(plan, label=f"{plan.label}-1")
    earlier = ("--from", one.path("predict"))
    return [
        _bench(one, "predict", *options, target="predict", ranks=1),
        _bench(plan, "predict", *options, *earlier, target="predict"),
    ]


def collectives(processes: int) -> RowSet:
    """Return the row set of `seiche bench collectives` with some processes for each GPU."""

    def commands(plan: Plan) -> list[Command]:
        options = ("--processes", processes, "--seconds", 40 * plan.seconds, "--machine", plan.path("machine"))
        target = f"collectives-{processes}"
        return [_bench(plan, "collectives", *options, target=target, ranks=plan.ranks * processes)]

    return commands


def tests(plan: Plan) -> list[Command]:
    """Return the command that runs the tests of several ranks on GPUs."""
    words = (sys.executable, "-m", "benchmarks.several_gpus.tests", "--json", plan.path("tests"))
    return [Command(tuple(map(str, (*words, "--device", plan.device))), 0)]


#: All row sets, in the order of the issue of several GPUs: weak loads are those of one GPU each.
ROW_SETS: dict[str, RowSet] = {
    "flow-weak": flow("flow-weak", "--weak", "--shape", "box", full=272, partitions=("bisection", "metis")),
    "flow-strong": flow("flow-strong", "--shape", "box", full=384, partitions=("bisection", "metis")),
    "flow-vessel": flow("flow-vessel", "--shape", "tube", full=2, partitions=("metis",)),
    "flow-halo": flow_halo,
    "flow-tree": flow_tree,
    "blood-resolved-3": blood("blood-resolved-3", "--weak", load="resolved", support=3),
    "blood-resolved-4": blood("blood-resolved-4", "--weak", load="resolved", support=4),
    "blood-metis": blood("blood-metis", "--weak", load="resolved", support=4, partition="metis"),
    "blood-coarse": blood("blood-coarse", "--weak", load="coarse", support=4),
    "blood-strong": blood("blood-strong", "--strong", load="128", support=4),
    "ultrasound-8": ultrasound("ultrasound-8", overlap=8),
    "ultrasound-16": ultrasound("ultrasound-16", overlap=16),
    "ultrasound-global": ultrasound("ultrasound-global", overlap=0),
    "waves-acoustic-weak": waves("waves-acoustic-weak", medium="acoustic"),
    "waves-elastic-weak": waves("waves-elastic-weak", medium="elastic"),
    "waves-acoustic-strong": waves("waves-acoustic-strong", "--strong", medium="acoustic"),
    "waves-elastic-strong": waves("waves-elastic-strong", "--strong", medium="elastic"),
    "machine": machine,
    "choice": choice,
    "predict": predict,
    **{f"collectives-{processes}": collectives(processes) for processes in (1, 2, 3, 4)},
    "tests": tests,
}
