# SPDX-License-Identifier: BSD-3-Clause
"""Which sites an output holds: a plane, a line, points, a sphere."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seiche.case.flow.schema_shapes import Nearest, Plane, Segment, Sphere
from seiche.domain.sites import SiteSet
from seiche.errors import CaseError


def select(where: Plane | Segment | Nearest | Sphere, sites: SiteSet, key: str) -> npt.NDArray[np.int64]:
    """Return the indices of the sites that `where` names, ascending; `key` begins messages.

    Raises CaseError when there is none, or a point is farther than a spacing from every site.
    """
    place = np.asarray(sites.origin) + sites.spacing * sites.coords
    if isinstance(where, Nearest):
        return _nearest(np.array(where.points), place, sites.spacing, key)
    if isinstance(where, Plane):
        normal = np.array(where.normal) / np.linalg.norm(where.normal)
        height = (place - np.array(where.point)) @ normal / sites.spacing
        chosen = (height >= -0.5) & (height < 0.5)
    elif isinstance(where, Segment):
        along = np.array(where.end) - np.array(where.start)
        share = (place - np.array(where.start)) @ along / max(float(along @ along), 1e-300)
        foot = np.array(where.start) + np.clip(share, 0.0, 1.0)[:, None] * along
        chosen = np.linalg.norm(place - foot, axis=1) <= 0.5 * 3**0.5 * sites.spacing
    else:
        chosen = np.linalg.norm(place - np.array(where.center), axis=1) <= where.radius
    if not chosen.any():
        raise CaseError(
            f"{key}: holds no fluid site; the vessel lies between {_corner(place, 0)} and {_corner(place, 1)} m"
        )
    return np.flatnonzero(chosen)


def _corner(place: npt.NDArray[np.float64], which: int) -> str:
    corner = place.max(axis=0) if which else place.min(axis=0)
    return "(" + ", ".join(f"{c:.4g}" for c in corner) + ")"


def _nearest(
    points: npt.NDArray[np.float64], place: npt.NDArray[np.float64], spacing: float, key: str
) -> npt.NDArray[np.int64]:
    from scipy.spatial import cKDTree

    distance, found = cKDTree(place).query(points)
    far = np.flatnonzero(distance > spacing)
    if len(far):
        shown = ", ".join(f"{c:.4g}" for c in points[far[0]])
        raise CaseError(
            f"{key}: the point ({shown}) m is {distance[far[0]] / spacing:.3g} spacings from every fluid site"
        )
    return np.unique(np.asarray(found, np.int64))
