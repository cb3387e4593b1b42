# SPDX-License-Identifier: BSD-3-Clause
"""Positions of cells in HemoCell's `.pos` files: their number, then `x y z rx ry rz` for each.

The positions are centers of bounding boxes in micrometres. The angles in degrees rotate the centred mesh about the
fixed axes x, y and z in this order, by the right-hand rule: x' = Rz(rz) Ry(ry) Rx(rx) x.
HemoCell negates the angles and then applies matrices of the negative angle (io/readPositionsBloodCells.cpp, version
2.7). Its undeformed cells are thin along y.
"""

from __future__ import annotations

import os
import warnings
from typing import Literal

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError
from seiche.io.files import replacing
from seiche.io.formats.off import content_lines, read_numbers

Floats = npt.NDArray[np.float64]
Thin = Literal["y", "z"]

#: Rotation by 90 degrees about x, from cells thin along z to cells thin along y.
_Z_TO_Y = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])


def read_pos(path: str | os.PathLike[str], *, thin: Thin = "z") -> tuple[Floats, Floats]:
    """Read centers (n, 3) in metres and rotation matrices (n, 3, 3) of cells.

    The matrices are for a mesh whose thin axis is `thin`: z for the shapes of `seiche.cells`, y for HemoCell's meshes.
    Raises FormatError for a truncated file or a line without six numbers, OSError if the file cannot be read.
    """
    from scipy.spatial.transform import Rotation

    lines = content_lines(path)
    if not lines or not lines[0][1].isdigit():
        raise FormatError(path, "line 1", "expected the number of cells")
    if int(lines[0][1]) != len(lines) - 1:
        raise FormatError(path, "line 1", f"declares {int(lines[0][1])} cells, but {len(lines) - 1} lines follow")
    rows = np.array([read_numbers(path, *line, 6) for line in lines[1:]]).reshape(-1, 6)
    if not len(rows):
        return np.zeros((0, 3)), np.zeros((0, 3, 3))
    rotations = np.asarray(Rotation.from_euler("xyz", rows[:, 3:], degrees=True).as_matrix())
    return 1e-6 * rows[:, :3], rotations @ _Z_TO_Y if thin == "z" else rotations


def write_pos(path: str | os.PathLike[str], centers: Floats, rotations: Floats, *, thin: Thin = "z") -> None:
    """Write centers (n, 3) in metres and rotation matrices (n, 3, 3) of a mesh with thin axis `thin`, atomically."""
    from scipy.spatial.transform import Rotation

    angles = np.zeros((0, 3))
    if len(centers):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # gimbal lock: setting one of the two angles to zero is correct
            rotations = rotations @ _Z_TO_Y.T if thin == "z" else rotations
            angles = Rotation.from_matrix(rotations).as_euler("xyz", degrees=True)
    text = f"{len(centers)}\n"
    for center, angle in zip((1e6 * np.asarray(centers)).tolist(), angles.tolist(), strict=True):
        text += " ".join(f"{value:.9g}" for value in (*center, *angle)) + "\n"
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="ascii")
