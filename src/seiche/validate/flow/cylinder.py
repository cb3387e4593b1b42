# SPDX-License-Identifier: BSD-3-Clause
"""Schaefer and Turek's cylinder in a channel at Re 20 and 100, with the case files in `examples/cylinder`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.case.labels import LabelledArrays
from seiche.case.loading import load
from seiche.case.new import examples_folder
from seiche.validate.check import Check, Setting

_SCHAEFER = "Schaefer, Turek 1996, doi:10.1007/978-3-322-89849-4_39"
_NABH = "Nabh 1998, in John, Matthies 2001, doi:10.1002/fld.195"
#: Drag and lift coefficients and pressure difference (Pa) at Re 20. Ranges of Schaefer and Turek: 5.57 to 5.59, 0.0104
#: to 0.0110, and 0.1172 to 0.1176.
STEADY = {"drag coefficient": 5.57953523, "lift coefficient": 0.01061895, "pressure difference": 0.11752017}
#: Ranges of the maximum drag, maximum lift and Strouhal number at Re 100.
SHEDDING = {"drag": (3.22, 3.24), "lift": (0.99, 1.01), "Strouhal number": (0.295, 0.305)}


def _run(setting: Setting, name: str, *changes: str) -> tuple[dict[str, Any], float]:
    """Run a case file with `changes` to its keys.

    Return the summary entry of the cylinder, and the final pressure difference (Pa).
    """
    with tempfile.TemporaryDirectory() as folder:
        path = examples_folder() / "cylinder" / name
        device = f'run.device="{setting.device}"'
        threads = [] if setting.threads is None or setting.device != "cpu" else [f"run.threads={setting.threads}"]
        simulation = load(path, overrides=[device, *threads, *changes], output=Path(folder))
        forces: dict[str, Any] = simulation.run(visible=False).summary["details"]["forces"]["cylinder"]
        return forces, pressure_difference(simulation.result("pressure"))


def pressure_difference(result: LabelledArrays) -> float:
    """Return the pressure at (0.15, 0.2) m minus that at (0.25, 0.2) m, both on the cylinder.

    The values of the two nearest sites in front and behind are extrapolated; they are means of the rows at equal
    distance from y = 0.2 m.
    """
    x, y = (np.asarray(result.coordinates[name].values, np.float64) for name in ("x", "y"))
    pressure = np.asarray(result["pressure"].values, np.float64)[:, :, 0]
    line = pressure[:, np.abs(y - 0.2) < 0.6 * (y[1] - y[0])].mean(axis=1)

    def at(position: float, sites: npt.NDArray[np.intp]) -> float:
        slope = (line[sites[1]] - line[sites[0]]) / (x[sites[1]] - x[sites[0]])
        return float(line[sites[0]] + slope * (position - x[sites[0]]))

    return at(0.15, np.flatnonzero(x < 0.15)[-2:]) - at(0.25, np.flatnonzero(x > 0.25)[:2])


def steady(setting: Setting) -> list[Check]:
    """Check drag, lift and pressure difference at Re 20 in the case file.

    The quick form has ten sites per diameter. The full form adds half the Mach number with ten and with twenty sites.
    The error of the drag is the sum of a discretisation error and one of
    second order in the Mach number.
    """
    checks: list[Check] = []
    runs = (("10 mm", 0.1),) if setting.quick else (("10 mm", 0.1), ("10 mm", 0.05), ("5 mm", 0.05))
    for spacing, mach in runs:
        changes = [f'geometry.spacing="{spacing}"', f"lattice.mach={mach}"]
        forces, difference = _run(setting, "case.toml", *changes)
        name = f"cylinder, Re = 20, spacing {spacing}, Mach {mach:g}"
        values = {
            "drag coefficient": abs(forces["drag_coefficient"] / STEADY["drag coefficient"] - 1),
            "lift coefficient": abs(forces["lift_coefficient"] - STEADY["lift coefficient"]),
            "pressure difference": abs(difference / STEADY["pressure difference"] - 1),
        }
        bounds = {"drag coefficient": 0.05, "lift coefficient": 0.003, "pressure difference": 0.05}
        checks += [
            Check(f"{name}: error of the {quantity}", value, bounds[quantity], reference=_NABH)
            for quantity, value in values.items()
        ]
    return checks


def shedding(setting: Setting) -> list[Check]:
    """Check the greatest drag and lift and the Strouhal number at Re 100 with twenty sites; not in the quick form."""
    if setting.quick:
        return []
    forces, _ = _run(setting, "case-re-100.toml", 'geometry.spacing="5 mm"')
    pressure = 0.5 * 1.0**2 * 0.1 * 0.01
    last_second = np.asarray(forces["history"]["force_N"])[-200:] / pressure  # the last second, about three periods
    values = {"drag": last_second[:, 0].max(), "lift": last_second[:, 1].max(), "Strouhal number": forces["strouhal"]}
    bounds = {"drag": 0.05, "lift": 0.05, "Strouhal number": 0.03}
    return [
        Check(
            f"cylinder, Re = 100: error of the {'' if name[0] == 'S' else 'greatest '}{name}",
            abs(float(value) / float(np.mean(SHEDDING[name])) - 1),
            bounds[name],
            reference=_SCHAEFER,
        )
        for name, value in values.items()
    ]
