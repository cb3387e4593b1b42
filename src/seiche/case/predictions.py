# SPDX-License-Identifier: BSD-3-Clause
"""`seiche predict`: the steps of a case on a machine, by the number of ranks, before anything runs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seiche.case.plans import CasePlans, planned_case
from seiche.errors import CaseError
from seiche.io.files import refuse_folder, replacing
from seiche.machine.in_use import VARIABLE
from seiche.machine.laws.file import Machine, known_machines, read_machine
from seiche.machine.laws.steps import Scale, StepTime, kept_scales, predict_step, scales_of
from seiche.observe.plan import RunPlan, magnified
from seiche.report.prediction import BEGIN, ScalingPrediction, as_json, as_text, prediction_figure
from seiche.report.stored import refuse_output
from seiche.report.style import kind_of_picture
from seiche.report.summary import find_summary, read_summary, whole_summaries

#: Rehearsing more ranks than this takes too long in one process.
MOST_RANKS = 4096


def ranks_of(text: str) -> list[int]:
    """Return the numbers of ranks in a text such as "1,2,4" or "1..512" (doubling; both ends are in).

    Raises:
        CaseError: something else.
    """
    found: set[int] = set()
    try:
        for part in text.split(","):
            first, dots, last = part.strip().partition("..")
            begin, end = int(first), int(last) if dots else int(first)
            if not 1 <= begin <= end <= MOST_RANKS:
                raise ValueError
            while begin < end:
                found.add(begin)
                begin *= 2
            found.add(end)
    except ValueError:
        raise CaseError(
            f"--ranks {text!r}: expected numbers from 1 to {MOST_RANKS} such as 1,2,4, or 1..512, which doubles"
        ) from None
    return sorted(found)


def machine_of(name: Path | None, rest: Path | None = None) -> Machine:
    """Return the machine of a file, of SEICHE_MACHINE or of machine.json; what it lacks is that of the file `rest`.

    Raises:
        CaseError: no file is named and none is there.
        FormatError: it is no machine file.
    """
    named = str(name) if name is not None else os.environ.get(VARIABLE) or "machine.json"
    if not Path(named).exists() and named not in known_machines():
        raise CaseError(
            f"machine file {named}: is not there; measure one with `seiche bench machine`, or name one of"
            f" {', '.join(known_machines())}"
        )
    machine = read_machine(named)
    return machine if rest is None else completed(machine, read_machine(rest))


def completed(machine: Machine, other: Machine) -> Machine:
    """Return the machine with the memory, the launches and the paths that only the other one has."""
    have = {(each.path, each.locality) for each in machine.paths}
    more = [each for each in other.paths if (each.path, each.locality) not in have]
    # Rates are those of all ranks of a measurement: of one rank, or of one node, they can be taken over.
    ranks = {"device": other.hardware.get("ranks", 1), "host": other.hardware.get("hosts", 1)}
    mine = {"device": machine.hardware.get("ranks", 1), "host": machine.hardware.get("hosts", 1)}
    share = {name: max(1, mine.get(name, 1)) / max(1, ranks.get(name, 1)) for name in other.memory}
    rates = {name: rate * share[name] for name, rate in other.memory.items()}
    intervals = {
        name: (low * share[name], high * share[name])
        for name, (low, high) in other.memory_intervals.items()
        if name not in machine.memory
    }
    return machine.model_copy(
        update={
            "name": f"{machine.name} (with {other.name})",
            "paths": [*machine.paths, *more],
            "memory": {**rates, **machine.memory},
            "memory_intervals": {**intervals, **machine.memory_intervals},
            "launch": {**other.launch, **machine.launch},
        }
    )


def predict_case(
    case: CasePlans,
    machine: Machine,
    ranks: Sequence[int],
    *,
    a_node: int | None = None,
    scales: dict[str, Scale] | None = None,
) -> ScalingPrediction:
    """Return the predicted steps of a case; numbers of ranks for which there is none are left out with the reason.

    Without `scales` stages take what the machine file says of those of the solver, or as long as the memory does.

    Raises:
        CaseError: there is none for any number.
    """
    learned = kept_scales(machine, case.solver, gpu=case.gpu) if scales is None else None
    scales = scales or learned
    strong: list[StepTime] = []
    weak: list[StepTime] = []
    left_out: dict[int, str] = {}
    plan: RunPlan | None = None
    for count in ranks:
        try:
            here = case.plan(count)
            step = predict_step(here, machine, a_node=a_node, scales=scales)
            times = count / (strong[0].ranks if strong else count)
            grown = magnified(here, times, case.dimensions)
            weak.append(predict_step(grown, machine, a_node=a_node, scales=scales))
            strong.append(step)
            plan = here
        except CaseError as error:
            left_out[count] = str(error)
    if plan is None:
        raise CaseError(left_out[ranks[0]])
    device, notes = "device" if case.gpu else "host", []
    if device not in machine.launch:
        notes.append(f"machine {machine.name!r} does not tell what a launch takes: none is counted")
    pieces = [piece for path in machine.paths for piece in path.pieces]
    if not machine.memory_intervals and not any(piece.alpha_interval or piece.beta_interval for piece in pieces):
        notes.append(f"machine {machine.name!r} has no intervals: those of the times do not say how sure it is")
    if learned:
        notes.append("stages are taken to run as those of the case of `seiche bench predict` did on this machine")
    elif scales is None and not case.gpu:
        notes.append(
            "stages are taken to run at the rate of the memory; --run takes what a run has shown,"
            " `seiche bench predict --keep` what runs of each solver show"
        )
    return ScalingPrediction(
        case.name, machine.name, case.gpu, plan.item, plan.items, plan.layout, case.steps, strong, weak, left_out, notes
    )


def scales_of_run(case: CasePlans, machine: Machine, run: Path, a_node: int | None = None) -> dict[str, Scale]:
    """Return how long stages took in a run of the case against the rate of the memory, from its summary.

    Raises:
        CaseError: no summary, or one of another case.
        FormatError: it is broken.
    """
    path = find_summary(run)
    summary: dict[str, Any] = read_summary(path)
    with whole_summaries(path):
        rows = {
            str(row["name"]): (float(row["mean"]), float(row["minimum"]))
            for row in summary["stages"]
            if row.get("mean")
        }
        ranks = int(summary["ranks"])
        if not 1 <= ranks <= MOST_RANKS:
            raise ValueError(f"{ranks} ranks")
    try:
        return scales_of(case.plan(ranks), machine, rows, a_node=a_node)
    except CaseError as error:
        raise CaseError(f"--run {path}: {error}") from None


def main(
    path: Path,
    *,
    machine: Path | None,
    ranks: str,
    device: str | None = None,
    overrides: Sequence[str] = (),
    a_node: int | None = None,
    run: Path | None = None,
    run_on: Path | None = None,
    rest: Path | None = None,
    output: Path | None = None,
    figure: Path | None = None,
) -> None:
    """Predict and print.

    Args:
        path: case file.
        machine: machine file, or the name of a known one.
        ranks: as of `ranks_of`.
        device: "cpu" or "cuda"; the case's own by default.
        overrides: changes of the case.
        a_node: ranks on each node.
        run: folder of a run of the case, whose stages say what part of the memory's rate they reach.
        run_on: machine file of where that run was; the same by default.
        rest: machine file that tells what the other lacks.
        output: file for the numbers, JSON.
        figure: file for the curves.

    Raises:
        CaseError: nothing can be predicted, or what is to be written would replace another file.
        FormatError: a file is broken.
    """
    if run_on is not None and run is None:
        raise CaseError(f"--run-on {run_on}: goes with --run")
    refuse_output(output, BEGIN)
    if figure is not None:
        refuse_folder(figure)
        kind_of_picture(figure.name)
    counts, target = ranks_of(ranks), machine_of(machine, rest)
    case = planned_case(path, overrides, device)
    scales = None
    if run is not None:
        scales = scales_of_run(case, machine_of(run_on) if run_on is not None else target, run, a_node)
        scales = {name: replace(scale, elsewhere=run_on is not None) for name, scale in scales.items()}
    found = predict_case(case, target, counts, a_node=a_node, scales=scales)
    print(as_text(found))
    if output is not None:
        with replacing(output) as part:
            part.write_text(json.dumps(as_json(found), indent=1) + "\n", encoding="utf-8")
    if figure is not None:
        prediction_figure(figure, found)
