# SPDX-License-Identifier: BSD-3-Clause
"""Picture of a wave case before it runs: speed in planes, sources, receivers and the absorbing layer."""

from __future__ import annotations

import numpy as np

from seiche.case.source import CaseFile
from seiche.case.waves.layer import absorbing_sides
from seiche.case.waves.media import Media
from seiche.case.waves.setup import read_wave_case
from seiche.case.waves.sources import receivers_of, sources_of
from seiche.report.case_figure import CasePicture, Group, PicturePanel, planes_of

#: Number of points along the longer side of a panel.
_POINTS = 300


def waves_picture(source: CaseFile) -> CasePicture:
    """Return the picture of a case, without its mesh; panels are planes through the middle of the sources.

    Raises CaseError and FormatError for an invalid case.
    """
    case = read_wave_case(source)
    media = Media(case.material, case.dim, source.folder)
    lower, upper = np.array(case.mesh.lower), np.array(case.mesh.upper)
    groups = []
    if points := [tuple(wave_source.position) for wave_source in sources_of(case, source.folder)]:
        groups.append(Group("sources", np.array(points), "*"))
    stations = receivers_of(case)[1]
    center = groups[0].points.mean(axis=0) if groups else 0.5 * (lower + upper)
    if stations:
        groups.append(Group("receivers", np.array(stations), "v"))
    panels = []
    for across, along in planes_of(case.dim):
        sides = upper - lower
        count = [max(8, round(_POINTS * sides[axis] / max(sides[across], sides[along]))) for axis in (across, along)]
        x, y = (lower[a] + sides[a] * (np.arange(n) + 0.5) / n for a, n in zip((across, along), count, strict=True))
        mesh = np.tile(center, (count[1], count[0], 1))
        mesh[..., across], mesh[..., along] = x[None, :], y[:, None]
        _, cp, cs = media.at(mesh.reshape(-1, case.dim))
        values = np.where(cs > 0, cs, cp).reshape(count[1], count[0])
        extent = (lower[across], upper[across], lower[along], upper[along])
        hidden = [axis for axis in range(case.dim) if axis not in (across, along)]
        title = ", ".join(f"{'xyz'[a]} = {center[a]:.4g} m" for a in hidden)
        panels.append(PicturePanel(values, across, along, extent, title))
    outlines = []
    width = case.boundary.sponge or 0.0
    if case.boundary.margin is None and width:
        shift = width * absorbing_sides(case)
        outlines.append(("absorbing layer", np.stack([lower + shift[:, 0], upper - shift[:, 1]])))
    title = case.title or str(source.path)
    return CasePicture(title, "slowest wave speed", "m/s", panels, groups, outlines)
