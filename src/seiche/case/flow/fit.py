# SPDX-License-Identifier: BSD-3-Clause
"""Check of the center, normal and radius of an iolet against the links of a `.gmy` file that cross it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_iolet import Opening, VelocityOpening
from seiche.case.flow.where import in_brackets
from seiche.domain.sites import IoletPlane
from seiche.errors import CaseError

#: Maximum distance (spacings) of a center from the plane in which the links are cut.
MAX_DISTANCE = 3.0
#: Maximum distance of a center from the middle of the cuts, relative to their extent; the axis of an opening that is
#: not round need not pass through its middle.
MAX_RELATIVE_OFFSET = 0.5
#: Maximum ratio of a radius to the extent of the cuts, up to one spacing; openings need not be round.
RADIUS_FACTOR = 2.0
#: Cosine of the largest angle (60 degrees) to the normal of the cuts, which is estimated from a few links.
MIN_COSINE = 0.5


def checked_planes(
    case: FlowCase, estimated: Sequence[IoletPlane], planes: Sequence[IoletPlane], spacing: float
) -> tuple[tuple[IoletPlane, ...], tuple[str, ...]]:
    """Return `planes` with normals into the fluid, and a note for each normal that was reversed.

    `estimated` are the openings according to the links of the geometry, `planes` those of the case, `spacing` is in
    metres. CaseError for a position that contradicts the links. For a pressure iolet only the normal is checked.
    """
    openings = {opening.name: opening for opening in case.iolet}
    result, notes = [], []
    for links, plane in zip(estimated, planes, strict=True):
        opening = openings[plane.name]
        if opening.normal is not None and float(np.dot(plane.normal, links.normal)) < MIN_COSINE:
            notes.append(_reversal_note(opening, links, plane))
            x, y, z = (-component for component in plane.normal)
            plane = replace(plane, normal=(x, y, z))
        if isinstance(opening, VelocityOpening):
            _check_position(opening, links, plane, spacing)
        result.append(plane)
    return tuple(result), tuple(notes)


def _reversal_note(opening: Opening, links: IoletPlane, plane: IoletPlane) -> str:
    """Return the note on a normal that points out of the fluid; CaseError if it does not suffice to reverse it."""
    key, normal = f'iolet["{opening.name}"].normal', in_brackets(plane.normal)
    if float(np.dot(plane.normal, links.normal)) > -MIN_COSINE:
        raise CaseError(
            f"{key}: {normal} is nearly perpendicular to the normal {in_brackets(links.normal)} of the links that "
            "cross the iolet; expected the normal of the iolet plane, pointing into the fluid"
        )
    if not isinstance(opening, VelocityOpening):
        return f"{key}: {normal} points out of the fluid; the normal is reversed"
    if links.role == "outlet" or (opening.velocity or opening.flow_rate or 0.0) < 0.0:
        raise CaseError(
            f"{key}: {normal} points out of the fluid, so the direction of the velocity is ambiguous; use the "
            "normal that points into the fluid, and a negative velocity for outflow"
        )
    return f"{key}: {normal} points out of the fluid; the normal is reversed, and a positive velocity is an inflow"


def _check_position(opening: VelocityOpening, links: IoletPlane, plane: IoletPlane, spacing: float) -> None:
    """Raise a CaseError if the center or radius of a velocity profile does not match the cut links."""
    offset = np.subtract(plane.center, links.center)
    height = float(offset @ np.asarray(links.normal))
    lateral = float(np.linalg.norm(offset - height * np.asarray(links.normal)))
    round_profile = opening.weights is None and opening.profile != "computed"
    reach = max(links.radius or 0.0, spacing)
    off_axis = round_profile and lateral > max(MAX_RELATIVE_OFFSET * reach, MAX_DISTANCE * spacing)
    if opening.center is not None and (off_axis or abs(height) > MAX_DISTANCE * spacing):
        raise CaseError(
            f'iolet["{opening.name}"].center: {in_brackets(plane.center)} m is '
            f"{np.linalg.norm(offset) / spacing:.3g} spacings from the links that cross the iolet; expected a point "
            f"near their center {in_brackets(links.center)} m"
        )
    if opening.radius is None or not round_profile:
        return
    if not reach / RADIUS_FACTOR - spacing <= opening.radius <= reach * RADIUS_FACTOR + spacing:
        raise CaseError(
            f'iolet["{opening.name}"].radius: {opening.radius:.4g} m does not fit the links that cross the iolet, '
            f"which extend {reach:.4g} m from their center; a velocity profile requires the radius of the opening"
        )
