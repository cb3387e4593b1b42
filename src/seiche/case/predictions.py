# SPDX-License-Identifier: BSD-3-Clause
"""`seiche predict`: predicted step time of a case on a machine for several numbers of ranks, without a run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seiche.case.plans import CasePlans, planned_case
from seiche.errors import CaseError
from seiche.io.files import check_output_folder, replacing
from seiche.machine.in_use import VARIABLE
from seiche.machine.laws.file import Machine, read_machine
from seiche.machine.laws.flat import flat_lines
from seiche.machine.laws.steps import Scale, StepTime, predict_step, scales_of, stored_scales
from seiche.observe.elapsed_time import announced
from seiche.observe.plan import RunPlan, magnified
from seiche.report.prediction import FIRST_CHARACTERS, ScalingPrediction, as_json, as_text, prediction_figure
from seiche.report.stored import check_output_path
from seiche.report.style import picture_format
from seiche.report.summary import find_summary, read_summary, summary_errors
from seiche.set_up import record_set_up

#: Maximum number of ranks, since planning more of them in one process takes too long.
MAX_RANKS = 4096
#: Below this fraction of reproduced times, a measurement should be repeated.
LOW_TRUST = 0.9


def ranks_of(text: str) -> list[int]:
    """Return the numbers of ranks in a text such as "1,2,4" or "1..512" (powers of two times the first number)."""
    counts: set[int] = set()
    try:
        for item in text.split(","):
            first, dots, last = item.strip().partition("..")
            begin, end = int(first), int(last) if dots else int(first)
            if not 1 <= begin <= end <= MAX_RANKS:
                raise ValueError
            while begin < end:
                counts.add(begin)
                begin *= 2
            counts.add(end)
    except ValueError:
        raise CaseError(
            f"--ranks {text!r}: expected numbers from 1 to {MAX_RANKS} such as 1,2,4, or 1..512 (doubling)"
        ) from None
    return sorted(counts)


def machine_of(name: Path | None, fallback: Path | None = None) -> Machine:
    """Return the machine of the file `name`, by default SEICHE_MACHINE or machine.json, completed by `fallback`.

    Raises CaseError or FormatError as `read_machine`.
    """
    file = str(name) if name is not None else os.environ.get(VARIABLE) or "machine.json"
    machine = read_machine(file)
    return machine if fallback is None else completed(machine, read_machine(fallback))


def completed(machine: Machine, other: Machine) -> Machine:
    """Return the machine with missing memory, launch and path data taken from `other`."""
    measured = {(path.path, path.locality) for path in machine.paths}
    paths = [path for path in other.paths if (path.path, path.locality) not in measured]
    # Measured rates are totals of all ranks (device) or nodes (host), so they are scaled to the numbers of `machine`.
    counts = {"device": "ranks", "host": "hosts"}
    scale = {
        name: max(1, machine.hardware.get(counts.get(name, ""), 1))
        / max(1, other.hardware.get(counts.get(name, ""), 1))
        for name in other.memory
    }
    rates = {name: rate * scale[name] for name, rate in other.memory.items()}
    intervals = {
        name: (low * scale[name], high * scale[name])
        for name, (low, high) in other.memory_intervals.items()
        if name not in machine.memory
    }
    return machine.model_copy(
        update={
            "name": f"{machine.name} (with {other.name})",
            "paths": [*machine.paths, *paths],
            "memory": {**rates, **machine.memory},
            "memory_intervals": {**intervals, **machine.memory_intervals},
            "launch": {**other.launch, **machine.launch},
        }
    )


def _machine_notes(machine: Machine, *, gpu: bool) -> list[str]:
    """Return what a reader must know about the measurements of a machine."""
    device, notes = "device" if gpu else "host", list[str]()
    if device not in machine.launch:
        notes.append(f"machine {machine.name!r} has no launch times: they are taken as 0")
    pieces = [piece for path in machine.paths for piece in path.pieces]
    if not machine.memory_intervals and not any(piece.alpha_interval or piece.beta_interval for piece in pieces):
        notes.append(
            f"machine {machine.name!r} has no confidence intervals: the predicted intervals exclude the uncertainty "
            "of the machine"
        )
    if machine.has_assumed_node_rate:
        notes.append(
            f"machine {machine.name!r} has no injection rate: a node is assumed to send no faster than one process "
            "does; measure it with `seiche bench machine` on several ranks of two nodes"
        )
    if machine.trust is not None:
        advice = "" if machine.trust >= LOW_TRUST else "; measure it again for longer, or when it is idle"
        notes.append(
            f"machine {machine.name!r}: {machine.trust:.0%} of its times were reproduced by another round of the "
            f"measurement{advice}"
        )
    notes += [f"machine {machine.name!r}: {line}" for line in flat_lines(machine)]
    if warnings := [f"{path.path} {path.locality}: {line}" for path in machine.paths for line in path.warnings]:
        more = f" (and {len(warnings) - 1} more in its file)" if len(warnings) > 1 else ""
        notes.append(f"machine {machine.name!r} was measured with warnings: {warnings[0]}{more}")
    return notes


def predict_case(
    case: CasePlans,
    machine: Machine,
    ranks: Sequence[int],
    *,
    ranks_per_node: int | None = None,
    scales: dict[str, Scale] | None = None,
    progress: Callable[[int], None] = lambda count: None,
) -> ScalingPrediction:
    """Return the predicted steps of a case, and the reason for each number of ranks on which it cannot run.

    `progress` is called with each number of ranks before its plan, which may take long, is computed.
    Without `scales`, stage times are those of the machine file for this solver; if it has none, memory bandwidth
    determines them. Raises CaseError if the case cannot run on any of the numbers of ranks.
    """
    stored = stored_scales(machine, case.solver, gpu=case.gpu) if scales is None else None
    scales = scales or stored
    strong: list[StepTime] = []
    weak: list[StepTime] = []
    omitted: dict[int, str] = {}
    plan: RunPlan | None = None
    for count in ranks:
        progress(count)
        try:
            fixed = case.plan(count)
            step = predict_step(fixed, machine, ranks_per_node=ranks_per_node, scales=scales)
            if strong:
                grown = magnified(fixed, count / strong[0].ranks, case.dimensions)
                weak.append(predict_step(grown, machine, ranks_per_node=ranks_per_node, scales=scales))
            else:
                weak.append(step)
            strong.append(step)
            plan = fixed
        except CaseError as error:
            omitted[count] = str(error)
    if plan is None:
        raise CaseError(omitted[ranks[0]])
    notes = _machine_notes(machine, gpu=case.gpu)
    if stored:
        notes.append("stage times are calibrated with times that `seiche bench predict` measured on this machine")
    elif scales is None and not case.gpu:
        notes.append(
            "stage times assume that only memory bandwidth limits a stage; for measured times use --run, or `seiche "
            "bench predict --keep`"
        )
    return ScalingPrediction(
        case.name, machine.name, case.gpu, plan.item, plan.items, plan.layout, case.steps, strong, weak, omitted, notes
    )


def scales_of_run(case: CasePlans, machine: Machine, run: Path, ranks_per_node: int | None = None) -> dict[str, Scale]:
    """Return the stage times of a run of the case, from its summary, relative to the memory-bandwidth prediction.

    Raises CaseError if the summary does not exist or belongs to another case, FormatError if it is not valid.
    """
    path = find_summary(run)
    summary: dict[str, Any] = read_summary(path)
    with summary_errors(path):
        stages = [row for row in summary["stages"] if row.get("mean")]
        rows = {str(row["name"]): (float(row["mean"]), float(row["minimum"])) for row in stages}
        ranks = int(summary["ranks"])
        if not 1 <= ranks <= MAX_RANKS:
            raise ValueError(f"{ranks} ranks")
    try:
        return scales_of(case.plan(ranks), machine, rows, ranks_per_node=ranks_per_node)
    except CaseError as error:
        raise CaseError(f"--run {path}: {error}") from None


def main(
    path: Path,
    *,
    machine: Path | None,
    ranks: str,
    device: str | None = None,
    overrides: Sequence[str] = (),
    ranks_per_node: int | None = None,
    run: Path | None = None,
    run_on: Path | None = None,
    fallback: Path | None = None,
    output: Path | None = None,
    figure: Path | None = None,
) -> None:
    """Predict the case `path` and print the result; arguments are the options of `seiche predict`.

    Raises CaseError if no prediction is possible or an output would replace another file, FormatError if a file is not
    valid.
    """
    if run_on is not None and run is None:
        raise CaseError(f"--run-on {run_on}: requires --run")
    check_output_path(output, FIRST_CHARACTERS)
    if figure is not None:
        check_output_folder(figure)
        picture_format(figure.name)
    counts, target = ranks_of(ranks), machine_of(machine, fallback)
    with announced(f"reading {path}") as show:
        with record_set_up() as times:
            case = planned_case(path, overrides, device)
        scales = None
        if run is not None:
            scales = scales_of_run(case, machine_of(run_on) if run_on is not None else target, run, ranks_per_node)
            scales = {name: replace(scale, elsewhere=run_on is not None) for name, scale in scales.items()}

        def progress(count: int) -> None:
            show(f"planning {count} of at most {counts[-1]} ranks")

        options: dict[str, Any] = {"ranks_per_node": ranks_per_node, "scales": scales}
        prediction = predict_case(case, target, counts, progress=progress, **options)
        prediction = replace(prediction, set_up=times.seconds())
    print(as_text(prediction))
    if output is not None:
        with replacing(output) as temporary:
            temporary.write_text(json.dumps(as_json(prediction), indent=1) + "\n", encoding="utf-8")
    if figure is not None:
        prediction_figure(figure, prediction)
