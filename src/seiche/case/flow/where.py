# SPDX-License-Identifier: BSD-3-Clause
"""Selection of the sites of an output: on a plane or line, near points, or in a sphere."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from seiche.case.flow.schema_shapes import Nearest, Plane, Segment, Sphere
from seiche.domain.sites import SiteSet
from seiche.errors import CaseError

Floats = npt.NDArray[np.float64]


def in_brackets(values: Iterable[float]) -> str:
    """Return numbers in the form "(x, y, z)" for messages."""
    return "(" + ", ".join(f"{value + 0.0:.4g}" for value in values) + ")"


def select(where: Plane | Segment | Nearest | Sphere, sites: SiteSet, key: str) -> npt.NDArray[np.int64]:
    """Return the ascending indices of the sites that `where` selects; messages begin with `key`.

    Raises CaseError if there is no such site, or if a point is farther than one spacing from all sites.
    """
    positions = np.asarray(sites.origin) + sites.spacing * sites.coords
    if isinstance(where, Nearest):
        return _nearest(np.array(where.points), positions, sites.spacing, key)
    if isinstance(where, Plane):
        normal = np.array(where.normal) / np.linalg.norm(where.normal)
        height = (positions - np.array(where.point)) @ normal / sites.spacing
        is_selected = (height >= -0.5) & (height < 0.5)
    elif isinstance(where, Segment):
        segment = np.array(where.end) - np.array(where.start)
        fraction = (positions - np.array(where.start)) @ segment / max(float(segment @ segment), 1e-300)
        foot = np.array(where.start) + np.clip(fraction, 0.0, 1.0)[:, None] * segment
        is_selected = np.linalg.norm(positions - foot, axis=1) <= 0.5 * 3**0.5 * sites.spacing
    else:
        is_selected = np.linalg.norm(positions - np.array(where.center), axis=1) <= where.radius
    if not is_selected.any():
        low, high = in_brackets(positions.min(axis=0)), in_brackets(positions.max(axis=0))
        raise CaseError(f"{key}: contains no fluid site; the vessel lies between {low} and {high} m")
    return np.flatnonzero(is_selected)


def _nearest(points: Floats, positions: Floats, spacing: float, key: str) -> npt.NDArray[np.int64]:
    from scipy.spatial import cKDTree

    distance, nearest = cKDTree(positions).query(points)
    distant = np.flatnonzero(distance > spacing)
    if len(distant):
        point, spacings = in_brackets(points[distant[0]]), distance[distant[0]] / spacing
        raise CaseError(f"{key}: the point {point} m is {spacings:.3g} spacings from the nearest fluid site")
    return np.unique(np.asarray(nearest, np.int64))
