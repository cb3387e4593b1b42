# SPDX-License-Identifier: BSD-3-Clause
"""The cylinder in a channel of Schaefer and Turek at Re 20 and 100: the case files in `examples/cylinder`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from seiche.case.loading import load
from seiche.case.new import examples_folder
from seiche.validate.check import Check, Setting

_SCHAEFER = "Schaefer, Turek 1996, doi:10.1007/978-3-322-89849-4_39"
#: Drag and lift coefficients at Re 20.
STEADY = (5.5795, 0.0106)
#: Ranges of the greatest drag, greatest lift and Strouhal number at Re 100.
SHEDDING = {"drag": (3.22, 3.24), "lift": (0.99, 1.01), "Strouhal number": (0.295, 0.305)}


def _forces(setting: Setting, name: str, *changes: str) -> dict[str, Any]:
    """Run a case file with `changes` of its keys, and return what its summary has on the force on the cylinder."""
    with tempfile.TemporaryDirectory() as folder:
        path = examples_folder() / "cylinder" / name
        device = f'run.device="{setting.device}"'
        threads = [] if setting.threads is None or setting.device != "cpu" else [f"run.threads={setting.threads}"]
        simulation = load(path, overrides=[device, *threads, *changes], output=Path(folder))
        found: dict[str, Any] = simulation.run(visible=False).summary["details"]["forces"]["cylinder"]
    return found


def cylinder(setting: Setting) -> list[Check]:
    """Drag, lift and Strouhal number of the case files.

    Quick: Re 20 with ten sites in the diameter. Otherwise also with twenty, and Re 100 with twenty.
    """
    checks: list[Check] = []
    for spacing in ("10 mm",) if setting.quick else ("10 mm", "5 mm"):
        changes = [f'geometry.spacing="{spacing}"', *(['time.duration="20 s"'] if setting.quick else [])]
        found = _forces(setting, "case.toml", *changes)
        name = f"cylinder, Re = 20, spacing {spacing}"
        drag = abs(found["drag_coefficient"] / STEADY[0] - 1)
        lift = abs(found["lift_coefficient"] - STEADY[1])
        checks += [
            Check(f"{name}: error of the drag coefficient", drag, 0.05, reference=_SCHAEFER),
            Check(f"{name}: error of the lift coefficient", lift, 0.003, reference=_SCHAEFER),
        ]
    return checks if setting.quick else checks + _shedding(setting)


def _shedding(setting: Setting) -> list[Check]:
    found = _forces(setting, "case-re-100.toml", 'geometry.spacing="5 mm"')
    pressure = 0.5 * 1.0**2 * 0.1 * 0.01
    late = np.asarray(found["history"]["force_N"])[-200:] / pressure  # the last second, about three periods
    values = {"drag": late[:, 0].max(), "lift": late[:, 1].max(), "Strouhal number": found["strouhal"]}
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
