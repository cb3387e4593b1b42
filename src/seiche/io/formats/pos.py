# SPDX-License-Identifier: BSD-3-Clause
"""Places of cells in HemoCell's `.pos` files: their number, then `x y z rx ry rz` for each.

Centers in micrometres; angles in degrees, by which the centred mesh is turned about the fixed axes x, y and z in this
order, clockwise as seen from the axis' tip (HemoCell takes them with the opposite sign).
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import numpy.typing as npt

from seiche.errors import FormatError
from seiche.io.files import replacing
from seiche.io.formats.off import content_lines, numbers

Floats = npt.NDArray[np.float64]


def read_pos(path: str | os.PathLike[str]) -> tuple[Floats, Floats]:
    """Read centers (n, 3) in metres and rotation matrices (n, 3, 3) of cells.

    Raises FormatError for a file that is cut short or has a line without six numbers; OSError when it cannot be read.
    """
    from scipy.spatial.transform import Rotation

    lines = content_lines(path)
    if not lines or not lines[0][1].isdigit():
        raise FormatError(path, "line 1", "the number of cells is expected")
    if int(lines[0][1]) != len(lines) - 1:
        raise FormatError(path, "line 1", f"{int(lines[0][1])} cells are announced, {len(lines) - 1} lines follow")
    rows = np.array([numbers(path, *line, 6) for line in lines[1:]]).reshape(-1, 6)
    if not len(rows):
        return np.zeros((0, 3)), np.zeros((0, 3, 3))
    turns = Rotation.from_euler("xyz", -rows[:, 3:], degrees=True)
    return 1e-6 * rows[:, :3], np.asarray(turns.as_matrix())


def write_pos(path: str | os.PathLike[str], centers: Floats, rotations: Floats) -> None:
    """Write centers (n, 3) in metres and rotation matrices (n, 3, 3); `path` changes only on success."""
    from scipy.spatial.transform import Rotation

    angles = np.zeros((0, 3))
    if len(centers):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the two turns about one axis one is taken as zero, which is right
            angles = -Rotation.from_matrix(rotations).as_euler("xyz", degrees=True)
    text = f"{len(centers)}\n"
    for center, angle in zip((1e6 * np.asarray(centers)).tolist(), angles.tolist(), strict=True):
        text += " ".join(f"{value:.9g}" for value in (*center, *angle)) + "\n"
    with replacing(path) as part:
        part.write_text(text, encoding="ascii")
