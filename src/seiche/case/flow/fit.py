# SPDX-License-Identifier: BSD-3-Clause
"""Whether the place that a case gives an iolet fits the links of a `.gmy` file that meet it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seiche.case.flow.schema import FlowCase
from seiche.case.flow.schema_iolet import Opening, VelocityOpening
from seiche.domain.sites import IoletPlane
from seiche.errors import CaseError

#: A center may lie so many spacings before or behind the cuts of the links, which are on the plane of the iolet.
MOST_SPACINGS = 3.0
#: Beside their middle it may lie this share of how far they reach: an axis need not be the middle of a cut that is not
#: round, but a profile about any other axis is not that of the opening.
MOST_ASIDE = 0.5
#: A radius is within this factor of how far the cuts reach, give or take a spacing: openings need not be round.
RADIUS_FACTOR = 2.0
#: A normal is within 60 degrees of that of the cuts: the estimate for a few links on a slanted plane is coarse.
LEAST_COSINE = 0.5


def fitted(
    case: FlowCase, found: Sequence[IoletPlane], planes: Sequence[IoletPlane], spacing: float
) -> tuple[tuple[IoletPlane, ...], tuple[str, ...]]:
    """Return `planes` with normals into the fluid, and a line for each that had to be turned round.

    `found` are the same openings as the links of the geometry give them, `planes` as the case places them, `spacing`
    in metres. CaseError for a place that contradicts the links. Only the normal matters to a pressure.
    """
    openings = {opening.name: opening for opening in case.iolet}
    result, notes = [], []
    for links, plane in zip(found, planes, strict=True):
        opening = openings[plane.name]
        if opening.normal is not None and float(np.dot(plane.normal, links.normal)) < LEAST_COSINE:
            notes.append(_turned(opening, links, plane))
            x, y, z = (-component for component in plane.normal)
            plane = replace(plane, normal=(x, y, z))
        if isinstance(opening, VelocityOpening):
            _refuse_place(opening, links, plane, spacing)
        result.append(plane)
    return tuple(result), tuple(notes)


def _turned(opening: Opening, links: IoletPlane, plane: IoletPlane) -> str:
    """Return the note on a normal that points out of the fluid; CaseError when turning it round would not do."""
    key, given = f'iolet["{opening.name}"].normal', _place(plane.normal)
    if float(np.dot(plane.normal, links.normal)) > -LEAST_COSINE:
        raise CaseError(
            f"{key}: {given} is across the normal {_place(links.normal)} of the links that meet the iolet; "
            "expected the normal of its plane, into the fluid"
        )
    if not isinstance(opening, VelocityOpening):
        return f"{key}: {given} points out of the fluid; it is turned round"
    if links.role == "outlet" or (opening.velocity or opening.flow_rate or 0.0) < 0.0:
        raise CaseError(
            f"{key}: {given} points out of the fluid, so whether the velocity enters or leaves is not clear; expected "
            "the normal into the fluid, and a negative velocity for a flow that leaves"
        )
    return f"{key}: {given} points out of the fluid; it is turned round, so that a positive velocity enters"


def _refuse_place(opening: VelocityOpening, links: IoletPlane, plane: IoletPlane, spacing: float) -> None:
    """Refuse a center or a radius, about which a profile of velocity is made, off the cuts of the links."""
    offset = np.subtract(plane.center, links.center)
    height = float(offset @ np.asarray(links.normal))
    aside = float(np.linalg.norm(offset - height * np.asarray(links.normal)))
    round_profile = opening.weights is None and opening.profile != "computed"
    reach = max(links.radius or 0.0, spacing)
    far = round_profile and aside > max(MOST_ASIDE * reach, MOST_SPACINGS * spacing)
    if opening.center is not None and (far or abs(height) > MOST_SPACINGS * spacing):
        raise CaseError(
            f'iolet["{opening.name}"].center: {_place(plane.center)} m is {np.linalg.norm(offset) / spacing:.3g} '
            f"spacings off the links that meet the iolet; expected near their middle {_place(links.center)} m"
        )
    if opening.radius is None or not round_profile:
        return
    if not reach / RADIUS_FACTOR - spacing <= opening.radius <= reach * RADIUS_FACTOR + spacing:
        raise CaseError(
            f'iolet["{opening.name}"].radius: {opening.radius:.4g} m does not fit the links that meet the iolet, which '
            f"reach {reach:.4g} m from their middle; a velocity profile needs the radius of the opening"
        )


def _place(vector: Sequence[float]) -> str:
    return "(" + ", ".join(f"{component + 0.0:.4g}" for component in vector) + ")"
