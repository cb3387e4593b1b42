# SPDX-License-Identifier: BSD-3-Clause
"""Surfaces of a case in metres."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from seiche.domain.surface import Surface
from seiche.io.formats.stl import read_stl


def read_surface(path: Path, unit: float) -> Surface:
    """Return the surface in an STL file whose coordinates are in `unit` metres."""
    raw = read_stl(path)
    return Surface(np.asarray(raw.vertices) * unit, raw.faces)
