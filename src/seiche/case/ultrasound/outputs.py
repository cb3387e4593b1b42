# SPDX-License-Identifier: BSD-3-Clause
"""Final outputs of an ultrasound run: records, images and temperatures, as HDF5 and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.output import Final, OutputTarget
from seiche.case.ultrasound.places import sensor_places
from seiche.case.ultrasound.setup import UltrasoundSetup, decompose
from seiche.case.ultrasound.sources import CurvedSource
from seiche.case.ultrasound.target import sonication_of, steering_results, target_results
from seiche.io.compression import store_array
from seiche.io.files import replacing
from seiche.io.mark import new_hdf5
from seiche.report.display_units import display_unit
from seiche.report.ultrasound_figure import Mark, Panel, Traces, UltrasoundPicture, middle_slice, ultrasound_figure
from seiche.ultrasound.focus import find_focus
from seiche.ultrasound.photoacoustic import time_reversal
from seiche.ultrasound.simulate import results_of
from seiche.ultrasound.solver import UltrasoundSolver
from seiche.ultrasound.target import nearest_points
from seiche.ultrasound.thermal import Bioheat, Tissue, heat_deposition

#: Maximum number of panels of the figure.
_PANELS = 4

Arrays = dict[str, npt.NDArray[Any]]
_UNITS = {
    **{
        "p": "Pa",
        "s": "Pa",
        "u": "m/s",
        "g": "Pa/m",
        "I": "W/m^2",
        "image": "Pa",
        "temperature": "degC",
        "dose": "min",
        "heat": "W/m^3",
    },
    **{"sound_speed": "m/s", "density": "kg/m^3", "alpha_coeff": "dB/(MHz^y cm)", "BonA": "1", "p_phase": "rad"},
}


class ResultFile(Final):
    """Records and derived results after the last step.

    Attributes:
        arrays: results by name, the same on every rank; empty before the end of the case.
    """

    def __init__(self, setup: UltrasoundSetup, solver: UltrasoundSolver, folder: Path) -> None:
        self._setup, self._solver = setup, solver
        output = setup.case.output
        self._file = folder / output.file
        self._picture = folder / output.picture if output.picture is not None else None
        self.arrays: Arrays = {}
        self._foci: dict[str, dict[str, Any]] | None = None

    @property
    def targets(self) -> Sequence[OutputTarget]:
        """Return the file and the picture."""
        files = [OutputTarget("output.file", self._file, "HDF5 file")]
        return files + ([OutputTarget("output.picture", self._picture)] if self._picture is not None else [])

    def finish(self) -> list[Path]:
        """Write the results on rank 0, unless the run was stopped before its last step."""
        solver = self._solver
        if solver.step < self._setup.steps:
            return []
        arrays = results_of(solver, self._setup.sensor, self._setup.layers)
        arrays |= self._image(arrays) | self._heat(arrays)
        self.arrays = arrays
        if solver.world.rank == 0:
            with replacing(self._file) as temporary:
                self._write_arrays(temporary, arrays)
            if self._picture is not None:
                with replacing(self._picture) as temporary:
                    self._draw(temporary, str(self._picture), arrays)
        return [self._file, *([self._picture] if self._picture is not None else [])]

    def _image(self, arrays: Arrays) -> Arrays:
        setup, case = self._setup, self._setup.case
        if case.image is None or setup.sensor.mask is None:
            return {}
        image = time_reversal(
            setup.grid,
            setup.medium,
            setup.sensor.mask,
            arrays["p"],
            iterations=case.image.iterations,
            compensate=case.image.compensate,
            pml_size=setup.layers.sizes,
            pml_alpha=setup.layers.alphas,
            pml_inside=setup.layers.inside,
            scheme=case.run.scheme,
            device=case.run.device,
            precision=case.run.precision,
            threads=case.run.threads,
            world=self._solver.world,
            decomposition=decompose(setup, self._solver.world.size),
        )
        return {"image": image}

    def _heat(self, arrays: Arrays) -> Arrays:
        setup, table = self._setup, self._setup.case.heat
        if table is None:
            return {}
        heat = arrays.pop("absorbed_power", None)
        if heat is None:
            heat = heat_deposition(arrays["p_amplitude"][0], setup.case.record.frequencies[0], setup.medium)
        tissue = Tissue(setup.medium.density, table.heat_capacity, table.conductivity, table.perfusion)
        grid, run = setup.grid, setup.case.run
        state = Bioheat(
            grid.shape,
            grid.spacings,
            tissue,
            table.temperature,
            device=run.device,
            threads=run.threads,
            symmetry=grid.symmetry,
        )
        state.run(table.duration, heat)
        hottest = state.temperature
        if table.cooling > 0:
            state.run(table.cooling)
        return {"heat": heat, "temperature": hottest, "dose": state.dose}

    def maxima(self) -> dict[str, Any]:
        """Return the maxima of the recorded maps and their positions."""
        maxima: dict[str, Any] = {}
        arrays, grid = self.arrays, self._setup.grid
        for name in ("p_amplitude", "p_max_all", "image", "temperature", "dose"):
            if name not in arrays:
                continue
            values = arrays[name][0] if name == "p_amplitude" else arrays[name]
            index = np.unravel_index(int(np.argmax(values)), grid.shape)
            maxima[f"greatest_{name}"] = {
                "value": float(values[index]),
                "unit": unit_of(name),
                "place_m": [float(grid.positions(axis)[k]) for axis, k in zip(grid.axes, index, strict=True)],
            }
        return maxima

    @property
    def _is_plane(self) -> bool:
        return len(self._setup.grid.shape) == 2 and self._setup.grid.symmetry is None

    def foci(self) -> dict[str, dict[str, Any]]:
        """Return the focus of each curved source whose frequency is the first recorded one, by "sources.NUMBER"."""
        if self._foci is None or not self.arrays:
            self._foci = self._find_foci()
        return self._foci

    def _find_foci(self) -> dict[str, dict[str, Any]]:
        arrays, case, foci = self.arrays, self._setup.case, {}
        for number, source in enumerate(case.source):
            if not isinstance(source, CurvedSource) or "p_amplitude" not in arrays:
                continue
            if source.frequency == case.record.frequencies[0]:
                focus = find_focus(arrays["p_amplitude"][0], self._setup.grid, source.position, source.curvature_center)
                if focus is not None:
                    foci[f"sources.{number}"] = {
                        "place_m": list(focus.position),
                        "pressure_Pa": focus.pressure,
                        "length_6dB_m": focus.length,
                        "width_6dB_m": focus.width,
                        "area_6dB_m2" if self._is_plane else "volume_6dB_m3": focus.size,
                    }
        return foci

    def target(self) -> dict[str, Any]:
        """Return the results around the target of the case; empty without a target, or before the last step."""
        setup = self._setup
        if setup.case.target is None or not self.arrays:
            return {}
        result = target_results(sonication_of(setup.case, setup.grid, setup.medium), self.arrays)
        steering = steering_results(setup.case, setup.steering)
        return {**result, **({"steering": steering} if steering else {})}

    def _write_arrays(self, path: Path, arrays: Arrays) -> None:
        grid, medium = self._setup.grid, self._setup.medium
        media = {name: getattr(medium, name) for name in ("sound_speed", "density", "alpha_coeff", "BonA")}
        with new_hdf5(path) as file:
            file.attrs["spacing"] = grid.spacings
            file.attrs["time_step"] = grid.dt
            file.attrs["first_recorded_step"] = self._setup.sensor.first
            if grid.symmetry is not None:
                file.attrs["symmetry"] = grid.symmetry
            for axis in grid.axes:
                file[axis] = grid.positions(axis)
                file[axis].attrs["unit"] = "m"
            if self._setup.sensor.mask is not None:
                file["sensor_mask"] = np.asarray(self._setup.sensor.mask, np.uint8)
            if (places := sensor_places(self._setup)) is not None:
                file["sensor_position"] = places
                file["sensor_position"].attrs["unit"] = "m"
            compression = self._setup.case.output.compression_of({name: _quantity_of(name) for name in arrays})
            for name, values in [*arrays.items(), *((k, v) for k, v in media.items() if v is not None)]:
                store_array(file, name, np.asarray(values), compression).attrs["unit"] = unit_of(name)

    def _draw(self, path: Path, name: str, arrays: Arrays) -> None:
        setup, grid = self._setup, self._setup.grid
        panels = []
        if setup.problem.initial_pressure is not None:
            inside = setup.layers.grid_slices(setup.problem.shape)
            start = middle_slice(setup.problem.initial_pressure[inside])
            factor, unit = display_unit(float(np.abs(start).max()), "Pa")
            panels.append(Panel("initial pressure", unit, factor * start))
        fields = {
            "p_amplitude": ("pressure amplitude", "Pa"),
            "p_max_all": ("maximum pressure", "Pa"),
            "p_final": ("final pressure", "Pa"),
            "temperature": ("temperature", "°C"),
            "dose": ("thermal dose", "equivalent min at 43 °C"),
            "image": ("image by time reversal", "Pa"),
        }
        marks = tuple(Mark(tuple(focus["place_m"]), label_of(focus)) for focus in self.foci().values())
        for key, (title, unit) in fields.items():
            if key in arrays:
                values = arrays[key][0] if key == "p_amplitude" else arrays[key]
                target = None if setup.case.target is None else nearest_points(grid, [setup.case.target.position])
                peak = np.unravel_index(int(np.argmax(values)), grid.shape)
                center = peak if target is None else target[0]
                factor, label = display_unit(float(np.abs(values).max()), unit)
                plane = factor * middle_slice(values, [int(k) for k in center])
                foci = marks if key == "p_amplitude" else ()
                panels.append(Panel(title, label, plane, both_signs=key == "p_final", marks=foci))
        speed = np.asarray(setup.medium.sound_speed)
        background = middle_slice(speed) if speed.ndim else None
        positions = [grid.positions(axis) for axis in grid.axes[:2]]
        traces = None
        if "p" in arrays and arrays["p"].size:
            times = setup.dt * (setup.sensor.first + np.arange(arrays["p"].shape[-1]))
            traces = Traces(np.asarray(times, np.float64), arrays["p"], sensor_places(setup))
        shown = panels[: _PANELS - (traces is not None)]
        ultrasound_figure(path, name, UltrasoundPicture(positions, shown, background, traces, setup.case.title))


def unit_of(name: str) -> str:
    """Return the SI unit of a result."""
    return _UNITS[name] if name in _UNITS else _UNITS[name[0]]


def _quantity_of(name: str) -> str:
    """Return the quantity of a result, a key of `absolute_error` for pressures and velocities."""
    return {"Pa": "pressure", "m/s": "velocity"}.get(unit_of(name), name)


def label_of(focus: dict[str, Any]) -> str:
    """Return the pressure and the -6 dB size of a focus of `ResultFile.foci` as text, in kPa and mm."""
    length, width = (
        "beyond the grid" if focus[key] is None else f"{1e3 * focus[key]:.3g} mm"
        for key in ("length_6dB_m", "width_6dB_m")
    )
    return f"{focus['pressure_Pa'] / 1e3:.4g} kPa, -6 dB length {length}, width {width}"
