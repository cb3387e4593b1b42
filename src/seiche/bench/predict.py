# SPDX-License-Identifier: BSD-3-Clause
"""`seiche bench predict`: comparison of predicted and measured times of steps and exchanges, a case per solver."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from seiche.backend import open_backend, parse_device
from seiche.bench import results
from seiche.bench.machine import available
from seiche.bench.prediction_cases import EXAMPLES, LARGE
from seiche.case.loading import load
from seiche.case.plans import planned_case
from seiche.domain.sharing import on_root
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError
from seiche.machine.laws.file import Machine, StageFactor, read_machine, write_machine
from seiche.machine.laws.steps import Scale, StepTime, predict_step, scales_of, stored_scales
from seiche.machine.measure.survey import measure
from seiche.observe.plan import RunPlan
from seiche.observe.repeat import slowest_rank_seconds
from seiche.report.stored import check_output_path
from seiche.solver import SolverBase

#: Schema of stored results; the number is increased when the meaning of a key changes.
SCHEMA: Final = "seiche-bench-predict-1"
#: Duration of the measurement of the machine if there is no machine file, s.
_MACHINE_SECONDS = 10.0
#: Numbers of warm-up steps (on a GPU, more than a graph), of steps timed by stage, and of timings of whole steps.
_WARM_UP_STEPS, _WARM_UP_STEPS_GPU, _STAGE_STEPS, _TIMINGS = 4, 40, 16, 5
#: Acceptable median error.
ACCEPTABLE_ERROR: Final = 0.15
#: Sizes of the cases: for a few cores, and for a GPU.
SIZES: Final = ("small", "large")


@dataclass
class PredictionRow:
    """A case on `ranks` ranks: measured and predicted seconds of a step and of its exchanges.

    `step` is predicted from the memory bandwidth only; `interval` is its confidence interval. `step_scaled` is
    predicted with stage times from another number of ranks or from the machine file (None without them). `scales` are
    the stage times of this run. `stages` are the measured and predicted seconds per step of each stage, averaged over
    the ranks; for messages, the waiting time.
    """

    case: str
    ranks: int
    transport: str
    measured_step: float
    step: float
    step_scaled: float | None
    measured_exchange: float
    exchange: float
    size: str = SIZES[0]
    interval: tuple[float, float] = (0.0, 0.0)
    stages: dict[str, tuple[float, float]] = field(default_factory=dict)
    scales: dict[str, Scale] = field(default_factory=dict)

    @property
    def errors(self) -> dict[str, float]:
        """Relative errors of the step, the scaled step and the exchange, if available."""
        pairs = {
            "step": (self.step, self.measured_step),
            "scaled step": (self.step_scaled, self.measured_step),
            "exchange": (self.exchange, self.measured_exchange),
        }
        return {
            name: abs(predicted / measured - 1)
            for name, (predicted, measured) in pairs.items()
            if predicted is not None and measured > 0
        }


def main(
    *,
    machine: Path | None = None,
    device: str = "auto",
    names: Sequence[str] = (),
    seconds: float = 2.0,
    earlier: Sequence[Path] = (),
    size: str | None = None,
    keep: bool = False,
    output: Path | None = None,
    world: World | None = None,
) -> list[PredictionRow]:
    """Measure, predict, print and return the rows (on rank 0; collective).

    Args:
        machine: machine file; by default the machine is measured.
        device: "auto", "cpu" or "cuda".
        names: names of the examples; all by default.
        seconds: duration of the steps of each example.
        earlier: results of this command on other numbers of ranks, in order of precedence: their stage times are used.
        size: size of the cases; by default "large" on GPUs and "small" elsewhere.
        keep: whether to store the stage times in the machine file, for predictions of other cases.
        output: file to which the rows are written.
        world: the ranks.

    Raises:
        CaseError: an example or size is unknown, `keep` lacks a machine file, or `output` exists and is another file.
        FormatError: a file is invalid.
        BackendUnavailable: the device does not exist.
    """
    world = World.from_mpi() if world is None else world
    unknown = [name for name in names if name not in EXAMPLES]
    if unknown:
        raise CaseError(f"example {unknown[0]!r} is not one of {', '.join(EXAMPLES)}")
    if size not in (None, *SIZES):
        raise CaseError(f"size {size!r} is not one of {', '.join(SIZES)}")
    if keep and (machine is None or not machine.exists()):
        raise CaseError("--keep needs an existing machine file: pass it with --machine")
    on_root(world, lambda: check_output_path(output))
    device_name = available(world) if device == "auto" else device
    earlier_scales = on_root(world, lambda: _read_scales(earlier))
    backend = open_backend(device_name, world.threads(), world.local_rank)
    target = read_machine(machine) if machine is not None else measure(world, backend, seconds=_MACHINE_SECONDS)
    rows = []
    for name in names or EXAMPLES:
        case_size = size or ("large" if backend.is_gpu else "small")
        row = _row(
            name,
            case_size,
            world,
            device=device_name,
            machine=target,
            seconds=seconds,
            earlier_scales=earlier_scales.get(name),
        )
        if row is not None:
            rows.append(row)
            _show_row(row)
            _store(rows, output, backend.describe(), target.name)  # after each case, in case a later one fails
    if world.rank == 0:
        _show_errors(rows)
        if keep and machine is not None:
            write_machine(machine, _with_stages(target, rows, gpu=backend.is_gpu))
    return rows


def _with_stages(machine: Machine, rows: Sequence[PredictionRow], *, gpu: bool) -> Machine:
    """Return the machine with the measured stage times, which replace those of the same solvers."""
    kind = "device" if gpu else "host"
    measured = {
        row.case: {
            name: StageFactor(best=scale.best, low=scale.low, high=scale.high, memory=scale.memory)
            for name, scale in row.scales.items()
        }
        for row in rows
    }
    return machine.model_copy(update={"stages": {**machine.stages, kind: {**machine.stages.get(kind, {}), **measured}}})


def _store(rows: Sequence[PredictionRow], output: Path | None, device: str, machine: str) -> None:
    content = results.document("predict", device, rows, schema=SCHEMA, machine=machine)
    for row, entry in zip(rows, content["rows"], strict=True):
        entry["errors"] = row.errors
    results.store(output, content)


def _read_scales(earlier: Sequence[Path]) -> dict[str, dict[str, Scale]]:
    """Return the stage times by example; the first of several files has precedence.

    Raises:
        FormatError: a file was not written by this command.
    """
    scales_by_case: dict[str, dict[str, Scale]] = {}
    for path in earlier:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise FormatError(path, "text", f"not valid JSON: {error}") from error
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise FormatError(path, "schema", f"expected {SCHEMA!r}, as written by `seiche bench predict --json`")
        try:
            for row in content["rows"]:
                scales = {name: _scale(**scale) for name, scale in row["scales"].items()}
                scales_by_case.setdefault(str(row["case"]), scales)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error).partition("\n")[0]
            raise FormatError(path, "rows", f"not as written by `seiche bench predict --json`: {reason}") from error
    return scales_by_case


def _scale(elsewhere: bool = False, **stage: Any) -> Scale:
    """Return a stored scale after the checks that also apply to those of a machine file.

    Raises:
        ValueError: a number is invalid.
    """
    return Scale(**StageFactor(**stage).model_dump(), elsewhere=bool(elsewhere))


def _row(
    name: str,
    size: str,
    world: World,
    *,
    device: str,
    machine: Machine,
    seconds: float,
    earlier_scales: dict[str, Scale] | None,
) -> PredictionRow | None:
    """Return the row of an example; None on ranks other than the first (collective)."""
    with TemporaryDirectory() as temporary:
        folder = Path(world.bcast(temporary))
        path = folder / f"{name}.toml"
        on_root(world, lambda: path.write_text(EXAMPLES[name], encoding="utf-8"))
        changes = LARGE[name] if size == "large" else ()
        with load(path, device=device, overrides=changes, output=folder / "out", world=world) as simulation:
            step, stages = _time_steps(simulation.solver, seconds, world)
            exchange = simulation.case_run.exchange_seconds()
            transport = simulation.solver.transport
        world.barrier()
        if world.rank:
            return None
        plan = planned_case(path, changes, device=parse_device(device).kind).plan(world.size)
    if transport != "none":
        plan = replace(plan, transport=transport)
    ranks_per_node = world.local_size
    predicted = predict_step(plan, machine, ranks_per_node=ranks_per_node)
    scales = earlier_scales or stored_scales(machine, name, gpu=plan.gpu)
    scaled_prediction = predict_step(plan, machine, ranks_per_node=ranks_per_node, scales=scales) if scales else None
    return PredictionRow(
        name,
        world.size,
        predicted.transport,
        step,
        predicted.seconds,
        scaled_prediction.seconds if scaled_prediction else None,
        exchange,
        predicted.exchange,
        size,
        (predicted.low, predicted.high),
        _stage_comparison(plan, stages, predicted),
        scales_of(plan, machine, stages, ranks_per_node=ranks_per_node),
    )


def _stage_comparison(
    plan: RunPlan, stages: dict[str, tuple[float, float]], predicted: StepTime
) -> dict[str, tuple[float, float]]:
    """Return the measured and predicted mean seconds of each stage in a step."""
    frequency: dict[str, float] = {}
    for weight, kind in plan.ranks[0].steps:
        for name in {stage.name for stage in kind}:
            frequency[name] = frequency.get(name, 0.0) + weight
    computing, waiting = predicted.computing, predicted.waiting
    return {
        name: (mean * frequency.get(name, 0.0), computing.get(name, 0.0) + waiting.get(name, 0.0))
        for name, (mean, _) in stages.items()
    }


def _advance(solver: SolverBase, steps: int) -> None:
    """Advance without checking the state."""
    solver.start(steps)
    solver.finish()


def _time_steps(solver: SolverBase, seconds: float, world: World) -> tuple[float, dict[str, tuple[float, float]]]:
    """Return the seconds of a step (minimum of the timings), and the mean and minimum seconds of stages over ranks."""
    timers = solver.timers
    warm_up_steps = _WARM_UP_STEPS_GPU if solver.backend.has_graphs else _WARM_UP_STEPS
    _advance(solver, warm_up_steps)
    timers.every, timers.skip = 1, 0  # time every step, without exception
    timers.reset()
    _advance(solver, _STAGE_STEPS)
    times = timers.times()
    timers.reset()
    timers.every = 1 << 30
    _advance(solver, warm_up_steps)
    step_seconds, count = np.inf, 8
    for _ in range(_TIMINGS):
        step_seconds = min(step_seconds, slowest_rank_seconds(world, partial(_advance, solver, count)) / count)
        count = max(8, 32 * round(seconds / _TIMINGS / step_seconds / 32))
    ranks = world.allgather({name: (time.mean, time.minimum) for name, time in times.items()})
    names = dict.fromkeys(name for rank in ranks for name in rank)
    means = {name: np.mean([rank.get(name, (0.0, 0.0)) for rank in ranks], axis=0) for name in names}
    # Timing by stage makes a step longer, and other processes may interfere, so only the proportions are used.
    samples = [time.samples for time in times.values()]
    stage_sum = sum(means[name][0] * count / _STAGE_STEPS for name, count in zip(times, samples, strict=True))
    factor = step_seconds / stage_sum
    return step_seconds, {
        name: (factor * float(mean), min(factor * float(mean), float(minimum)))
        for name, (mean, minimum) in means.items()
    }


def _show_row(row: PredictionRow) -> None:
    scaled = f", scaled {row.step_scaled * 1e6:.4g}" if row.step_scaled is not None else ""
    text = f"{row.case} on {row.ranks}: step {row.measured_step * 1e6:.4g} us, predicted {row.step * 1e6:.4g}{scaled}"
    if row.ranks > 1:
        text += f"; exchange {row.measured_exchange * 1e6:.4g} us, predicted {row.exchange * 1e6:.4g} ({row.transport})"
    print(text, flush=True)


def _show_errors(rows: Sequence[PredictionRow]) -> None:
    for name in ("step", "scaled step", "exchange"):
        errors = [row.errors[name] for row in rows if name in row.errors]
        if errors:
            print(f"seiche: median error of the predicted {name}: {np.median(errors):.0%} of {len(errors)}")
