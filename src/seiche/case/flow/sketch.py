# SPDX-License-Identifier: BSD-3-Clause
"""Picture of a flow case before it runs: the fluid seen along each axis, and the openings."""

from __future__ import annotations

import numpy as np

from seiche.case.flow.setup import FlowSetup
from seiche.domain.occupancy import SizedSites
from seiche.errors import CaseError
from seiche.report.case_figure import CasePicture, Group, PicturePanel, disc, planes_of

#: Number of sites of a built-in shape above which they are not generated for a picture.
MAX_DRAWN_SITES = 20_000_000


def can_be_drawn(setup: FlowSetup) -> bool:
    """Return whether the set-up has sites at some spacing, or so many that they should not be generated."""
    sites = setup.vessel.sites
    is_sized = isinstance(sites, SizedSites) and setup.vessel.coarse is None
    return not is_sized or len(sites) > MAX_DRAWN_SITES


def flow_picture(setup: FlowSetup) -> CasePicture:
    """Return the picture of a case; a large vessel is drawn at a larger spacing.

    Raises:
        CaseError: no sites of the vessel are generated.
    """
    sites = setup.vessel.sites
    if isinstance(sites, SizedSites):
        if setup.vessel.coarse is None:
            raise CaseError("--picture: the vessel has too many sites to be drawn; add --set geometry.spacing=...")
        sites = setup.vessel.coarse
    panels = []
    for across, along in planes_of(3):
        hidden = 3 - across - along
        shape = (sites.shape[along], sites.shape[across])
        flat = sites.coords[:, along].astype(np.int64) * shape[1] + sites.coords[:, across]
        depth = np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape) * sites.spacing
        low = np.array(sites.origin) - 0.5 * sites.spacing
        high = low + sites.spacing * np.array(sites.shape)
        extent = (float(low[across]), float(high[across]), float(low[along]), float(high[along]))
        values = np.where(depth > 0, depth, np.nan)
        panels.append(PicturePanel(values, across, along, extent, f"along {'xyz'[hidden]}"))
    radius = 0.1 * sites.spacing * float(max(sites.shape))
    groups = [
        Group(plane.name, disc(plane.center, plane.normal, plane.radius or radius), is_line=True)
        for plane in setup.vessel.sites.iolets
    ]
    return CasePicture(setup.title, "thickness of the fluid", "m", panels, groups)
