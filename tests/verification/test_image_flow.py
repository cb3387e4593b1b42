# SPDX-License-Identifier: BSD-3-Clause
"""Flow through a tilted tube given as a mask of oblique, anisotropic voxels: Poiseuille's law."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import seiche
from case_files import toml_of
from voxel_files import OBLIQUE, cylinder, image_of, write_nifti

RADIUS, LENGTH, DROP, VISCOSITY = 1e-3, 4e-3, 0.2, 4e-3
AXIS = np.array([2.0, 1.0, 0.5]) / np.linalg.norm([2.0, 1.0, 0.5])


def opening(name: str, side: float, pressure: float) -> dict[str, object]:
    center = [f"{c * side * LENGTH / 2:.12g} m" for c in AXIS]
    normal = [float(-side * c) for c in AXIS]
    keys = {"center": center, "normal": normal, "radius": "1.5 mm", "ramp": 200}
    return {"name": name, "kind": "pressure", "pressure": f"{pressure:g} Pa", **keys}


def flow_rate(folder: Path, voxels: int) -> float:
    """Return the steady flow rate (m^3/s) of a mask with this number of voxels along a radius."""
    folder.mkdir()
    size = RADIUS / voxels
    shape = tuple(int(6.5 * voxels / k) for k in (1.0, 1.0, 1.6))
    image = image_of(cylinder(RADIUS, tuple(AXIS)), (size, size, 1.6 * size), shape, OBLIQUE)
    write_nifti(folder / "tube.nii.gz", image)
    tables = {
        "solver": "flow",
        "geometry": {"spacing": "0.2 mm", "image": {"file": "tube.nii.gz"}},
        "fluid": {"viscosity": "4 mPa s", "density": "1000 kg/m^3"},
        "lattice": {"tau": 0.9},
        "walls": {"kind": "bouzidi"},
        "time": {"steps": 1500},
        "iolet": [opening("a", -1.0, DROP), opening("b", 1.0, 0.0)],
    }
    (folder / "case.toml").write_text(toml_of(tables))
    with seiche.load(folder / "case.toml") as simulation:
        simulation.run()
        return float(simulation.flow_rates()["a"])


def test_the_flow_rate_converges_with_the_voxels(tmp_path: Path) -> None:
    """Five sites per radius have an error of 1 %; that of the mask falls from 4 % at 8 voxels to 1 % at 16."""
    pytest.importorskip("nibabel")
    exact = np.pi * RADIUS**4 * DROP / (8 * VISCOSITY * LENGTH)
    for voxels, error in ((8, 0.06), (16, 0.02)):
        assert flow_rate(tmp_path / str(voxels), voxels) == pytest.approx(exact, rel=error)
