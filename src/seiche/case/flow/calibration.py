# SPDX-License-Identifier: BSD-3-Clause
"""`seiche calibrate`: Windkessel outlets for a flow split and the pressures at the inlet, refined by short runs."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from seiche.case.flow.kind import prepare
from seiche.case.flow.schema_iolet import VelocityOpening
from seiche.case.flow.setup import FlowSetup
from seiche.case.flow.units import CS2
from seiche.case.load import read_source
from seiche.case.loading import load
from seiche.case.source import CaseFile
from seiche.case.toml_text import toml_text
from seiche.errors import CaseError
from seiche.flow.model import VelocityIolet
from seiche.flow.solver import FlowSolver
from seiche.flow.windkessel_targets import PROXIMAL_SHARE, Circuit, Floats, circuit_of

#: Samples of the flow and the pressures in a period.
_SAMPLES = 200
#: Relative error of mean pressure, pulse pressure and shares of the flow at which refinement ends.
TOLERANCE = 0.01
#: Changes of the lattice density from the reference, beyond which a case is not run, and without advice.
LARGEST_CHANGE, MODERATE_CHANGE = 0.5, 0.1


@dataclass(frozen=True)
class Targets:
    """Pressures at the inlet (Pa), shares of the flow by outlet, the distal pressure (Pa) and the proximal fraction."""

    mean: float
    systolic: float
    diastolic: float
    split: Mapping[str, float]
    distal: float = 0.0
    share: float = PROXIMAL_SHARE

    def check(self) -> None:
        """Raise a CaseError for targets that contradict each other."""
        if not self.diastolic < self.mean < self.systolic:
            raise CaseError(
                f"calibrate: the mean of {self.mean:g} Pa is not between the diastolic pressure of {self.diastolic:g} "
                f"and the systolic pressure of {self.systolic:g} Pa"
            )
        if not self.distal < self.mean:
            raise CaseError(f"--distal: {self.distal:g} Pa is not below the mean of {self.mean:g} Pa")
        if not 0.0 <= self.share < 1.0:
            raise CaseError(f"--share: {self.share:g} is out of range; expected 0 to 1, typically 0.056 to 0.1")
        if not self.split or min(self.split.values()) <= 0.0 or abs(sum(self.split.values()) - 1.0) > 1e-3:
            raise CaseError(f"--split: the shares {dict(self.split)} are not positive numbers with the sum 1")

    @property
    def pulse(self) -> float:
        """Return the pulse pressure (Pa)."""
        return self.systolic - self.diastolic


@dataclass(frozen=True)
class MeasuredPeriod:
    """Results of the last period of a run.

    Pressures (Pa) at the inlet at `_SAMPLES` times, mean pressures of the outlets, shares and total of the mean outflow
    (m^3/s).
    """

    inlet: Floats
    outlets: Mapping[str, float]
    split: Mapping[str, float]
    outflow: float

    def error(self, targets: Targets) -> float:
        """Return the largest relative error of mean pressure, pulse pressure and shares."""
        mean, pulse = float(self.inlet.mean()) / targets.mean, float(np.ptp(self.inlet)) / targets.pulse
        shares = [abs(self.split[name] / share - 1.0) for name, share in targets.split.items()]
        return max(abs(mean - 1.0), abs(pulse - 1.0), *shares)


@dataclass(frozen=True)
class Calibration:
    """Outlets of a case with a pulsatile inlet: a circuit, and the resistance (Pa s/m^3) of each outlet."""

    setup: FlowSetup
    inlet: str
    flow: Floats
    period: float
    targets: Targets
    circuit: Circuit
    resistances: Mapping[str, float]

    def density_change(self) -> float:
        """Return the largest change of the lattice density by the pressures, relative to the reference density."""
        curve, stored = self.circuit.pressure(self.flow, self.period), self.circuit.initial(self.flow, self.period)
        change = max(float(np.abs(curve - self.targets.mean).max()), abs(stored - self.targets.mean))
        return float(self.setup.units.to_lattice("stress", change)) / CS2

    def largest_step(self) -> float:
        """Return the time step (s) at which the density changes by `MODERATE_CHANGE`."""
        return float(self.setup.dt * np.sqrt(MODERATE_CHANGE / self.density_change()))

    def tables(self, source: CaseFile) -> dict[str, Any]:
        """Return the tables of the case with these outlets."""
        tables = copy.deepcopy(dict(source.tables))
        pressure = self.circuit.pressure(self.flow, self.period)
        stored = self.circuit.initial(self.flow, self.period)
        tables["fluid"] = {
            **tables["fluid"],
            "reference_pressure": f"{self.targets.mean:.10g} Pa",
            "initial_pressure": f"{float(pressure[0]):.10g} Pa",
        }
        keys = ("name", "center", "normal", "radius", "role")
        for number, iolet in enumerate(tables["iolet"]):
            if (name := iolet["name"]) == self.inlet:
                continue
            resistance, share = self.resistances[name], self.circuit.share
            tables["iolet"][number] = {
                **{key: iolet[key] for key in keys if key in iolet},
                "kind": "windkessel",
                "proximal_resistance": f"{share * resistance:.10g} Pa s/m^3",
                "resistance": f"{(1.0 - share) * resistance:.10g} Pa s/m^3",
                "compliance": f"{self.circuit.compliance * self.targets.split[name]:.10g} m^3/Pa",
                "distal_pressure": f"{self.targets.distal:.10g} Pa",
                "initial_pressure": f"{stored:.10g} Pa",
            }
        return tables

    def refined(self, measured: MeasuredPeriod) -> Calibration:
        """Return the calibration corrected by the resistance of the vessel and the measured pulse pressure."""
        mean_flow, mean = measured.outflow, float(measured.inlet.mean())
        flow = self.flow * (mean_flow / float(self.flow.mean()))  # the area of an opening on the lattice is not exact
        resistances = {}
        for name, share in self.targets.split.items():
            loss = (mean - measured.outlets[name]) * share / measured.split[name]
            resistances[name] = (self.targets.mean - loss - self.targets.distal) / (share * mean_flow)
            if not resistances[name] > 0.0:
                raise CaseError(
                    f'calibrate: the pressure loss of {loss:.4g} Pa up to "{name}" exceeds the mean pressure; '
                    "choose a higher mean or a smaller share for it"
                )
        drop = measured.inlet - self.circuit.pressure(flow, self.period)
        total = 1.0 / sum(1.0 / value for value in resistances.values())
        options = {"share": self.circuit.share, "distal": self.circuit.distal}
        circuit = circuit_of(flow, self.period, total, self.targets.pulse, loss=drop, **options)
        return replace(self, flow=flow, circuit=circuit, resistances=resistances)


def calibrate(
    path: Path, targets: Targets, *, output: Path, runs: int = 4, cycles: int = 5, force: bool = False
) -> list[str]:
    """Write the case at `path` with calibrated outlets to `output`, and return lines that describe the result.

    At most `runs` runs of `cycles` periods refine the parameters; 0 uses the circuit alone. Raises CaseError for
    targets or a case that cannot be calibrated, and if `output` exists without `force`.
    """
    targets.check()
    if output.exists() and not force:
        raise CaseError(f"{output}: exists already; add --force to replace it")
    if output.resolve().parent != path.resolve().parent:
        raise CaseError(f"--output {output}: must be in the folder of {path}, since its files are relative to it")
    source = read_source(path)
    calibration, measured = _first(source, targets), None
    if (change := calibration.density_change()) >= LARGEST_CHANGE:
        raise CaseError(
            f"calibrate: the pressures change the lattice density by {change:.0%} at the time step of "
            f"{calibration.setup.dt:.3g} s; use a step of at most {calibration.largest_step():.2g} s, which gives "
            f"{MODERATE_CHANGE:.0%} (lattice.step, or a smaller lattice.mach)"
        )
    for number in range(runs):
        measured = _measure(source, calibration, cycles)
        if measured.error(targets) <= TOLERANCE or number == runs - 1:
            break
        calibration = calibration.refined(measured)
    output.write_text(_HEADER.format(path.name) + toml_text(calibration.tables(source)), encoding="utf-8")
    return [*_lines(calibration, measured), f"wrote {output}"]


_HEADER = "# {}, with Windkessel outlets by `seiche calibrate`\n"


def _first(source: CaseFile, targets: Targets) -> Calibration:
    """Return the outlets of a vessel without resistance; CaseError for a case that cannot be calibrated."""
    setup = prepare(source)
    inlets = [opening for opening in setup.case.iolet if isinstance(opening, VelocityOpening)]
    if len(inlets) != 1:
        raise CaseError(f"{source.path}: has {len(inlets)} velocity iolets; calibrate needs one inlet")
    name = inlets[0].name
    outlets = [opening.name for opening in setup.case.iolet if opening.name != name]
    if set(outlets) != set(targets.split):
        raise CaseError(f"--split: expected a share for each outlet: {', '.join(outlets)}")
    number = [plane.name for plane in setup.vessel.sites.iolets].index(name)
    iolet, period = setup.model.iolets[number], setup.period
    if not isinstance(iolet, VelocityIolet) or period is None:
        raise CaseError(f'iolet["{name}"]: needs a period, such as harmonics or a waveform, or a table that repeats')
    flow = _flow(setup, number, iolet, period)
    if not flow.mean() > 0.0:
        raise CaseError(f'iolet["{name}"]: its mean flow rate is {flow.mean():.4g} m^3/s; expected inflow')
    resistance = (targets.mean - targets.distal) / float(flow.mean())
    circuit = circuit_of(flow, period, resistance, targets.pulse, share=targets.share, distal=targets.distal)
    resistances = {outlet: resistance / share for outlet, share in targets.split.items()}
    return Calibration(setup, name, flow, period, targets, circuit, resistances)


def _flow(setup: FlowSetup, number: int, iolet: VelocityIolet, period: float) -> Floats:
    """Return samples of the flow rate (m^3/s) of a velocity iolet over one period."""
    plane = setup.vessel.sites.iolets[number]
    area = setup.iolet_inputs[plane.name].area or np.pi * (plane.radius or 0.0) ** 2
    steps = np.arange(_SAMPLES) / _SAMPLES * period / setup.dt
    if iolet.table is not None:
        velocity = np.interp(steps, iolet.table.times, iolet.table.values)
    else:
        velocity = np.full(_SAMPLES, float(iolet.mean))
        for k, harmonic in enumerate(iolet.harmonics, start=1):
            velocity += np.real(harmonic * np.exp(2j * np.pi * k * steps / iolet.period))
    return np.asarray(setup.units.to_si("velocity", velocity) * area)


def _measure(source: CaseFile, calibration: Calibration, cycles: int) -> MeasuredPeriod:
    """Run the case and return the results of its last period."""
    tables = calibration.tables(source)
    tables["time"] = {"cycles": cycles}
    tables.pop("output", None)
    samples: list[tuple[float, dict[str, float], dict[str, float]]] = []
    with tempfile.TemporaryDirectory() as name:
        case = source.folder / f".{source.path.stem}-{Path(name).name}.toml"
        try:
            case.write_text(toml_text(tables), encoding="utf-8")
            with load(case, output=Path(name) / "out") as simulation:
                assert isinstance(simulation.solver, FlowSolver)
                sites, owned = calibration.setup.vessel.sites, simulation.solver.owned
                names = [plane.name for plane in sites.iolets]
                touching = [sites.boundary[(sites.link_iolet == k).any(axis=1)] for k in range(len(names))]
                rows = [np.flatnonzero(np.isin(owned, numbers)) for numbers in touching]

                def sample(run: Any) -> None:
                    pressure = run.fields("pressure")["pressure"]
                    means = {n: float(pressure[r].mean()) for n, r in zip(names, rows, strict=True)}
                    samples.append((run.time, means, dict(run.flow_rates())))

                simulation.every(sample, steps=max(1, round(calibration.period / simulation.setup.dt / _SAMPLES)))
                simulation.run(visible=False)
                end = simulation.time
        finally:
            case.unlink(missing_ok=True)
    last_samples = [sample for sample in samples if sample[0] > end - calibration.period * (1 + 1e-9)]
    times = [time % calibration.period for time, _, _ in last_samples]
    inlet = [means[calibration.inlet] for _, means, _ in last_samples]
    phases = np.arange(_SAMPLES) / _SAMPLES * calibration.period
    outlets = list(calibration.targets.split)
    flows = {name: -float(np.mean([flow[name] for _, _, flow in last_samples])) for name in outlets}
    total = sum(flows.values())
    if not min(flows.values()) > 0.0:
        raise CaseError(f"calibrate: the mean outflow is not positive at every outlet ({flows}); use more --cycles")
    return MeasuredPeriod(
        np.interp(phases, times, inlet, period=calibration.period),
        {name: float(np.mean([means[name] for _, means, _ in last_samples])) for name in outlets},
        {name: flow / total for name, flow in flows.items()},
        total,
    )


def _lines(calibration: Calibration, measured: MeasuredPeriod | None) -> Sequence[str]:
    """Return the parameters of the outlets, and targets beside measured values (mmHg)."""
    mmhg, targets, share = 133.322387415, calibration.targets, calibration.circuit.share
    lines = []
    for name, value in calibration.resistances.items():
        compliance = calibration.circuit.compliance * targets.split[name]
        lines.append(
            f"{name}: proximal {share * value:.4g} Pa s/m^3, distal {(1 - share) * value:.4g} Pa s/m^3, "
            f"compliance {compliance:.4g} m^3/Pa"
        )
    if (change := calibration.density_change()) > MODERATE_CHANGE:
        step = calibration.largest_step()
        lines.append(
            f"advice: the pressures change the lattice density by {change:.0%}; a step of {step:.2g} s gives less"
        )
    if measured is None:
        return [*lines, "not refined by a run: the resistance of the vessel is neglected"]
    inlet = measured.inlet
    for label, target, value in (
        ("mean", targets.mean, inlet.mean()),
        ("pulse", targets.pulse, np.ptp(inlet)),
        ("systolic", targets.systolic, inlet.max()),
        ("diastolic", targets.diastolic, inlet.min()),
    ):
        lines.append(f"{label} pressure: {value / mmhg:.5g} mmHg (target {target / mmhg:.5g})")
    lines += [f"share of {name}: {measured.split[name]:.4f} (target {f:.4f})" for name, f in targets.split.items()]
    if measured.error(targets) > TOLERANCE:
        lines.append(f"advice: the largest error is {measured.error(targets):.2g}; use more --runs or --cycles")
    return lines
