# SPDX-License-Identifier: BSD-3-Clause
"""Flow in a symmetric bifurcation, which divides the flow evenly and conserves mass."""

from __future__ import annotations

import numpy as np

from seiche.domain.bifurcation import bifurcation_surface
from seiche.domain.sites import SiteSet
from seiche.domain.voxelise import voxelise
from seiche.flow.model import FlowModel, Newtonian, PressureIolet
from seiche.validate.check import Check, Setting

_SYMMETRY = "symmetry; conservation of mass"


def symmetric_bifurcation(radius: float) -> SiteSet:
    """Return a vessel of `radius` sites with two equal branches; y = 0 is midway between two layers of sites."""
    parent = 1.5e-3
    spacing = parent / radius
    daughter = parent / 2 ** (1 / 3)  # Murray's law
    surface, planes = bifurcation_surface(
        parent, (daughter, daughter), (0.9, 0.9), 0.0, parent_length=5e-3, daughter_length=5e-3
    )
    low = surface.vertices.min(axis=0) / spacing
    x, y, z = ((np.floor(low) - 1.5) * spacing).tolist()
    sites, _ = voxelise(surface, spacing, planes, origin=(x, y, z))
    return sites


def flow_split(setting: Setting) -> list[Check]:
    """Check that pressure-driven flow divides equally between the two branches of a symmetric bifurcation."""
    radius = 5.0 if setting.quick else 12.0
    sites = symmetric_bifurcation(radius)
    iolets = (PressureIolet(1.0005), PressureIolet(1.0), PressureIolet(1.0))
    solver = setting.solver(sites, FlowModel(Newtonian(0.3), iolets=iolets))
    solver.advance(int(30 * radius**2))
    inflow, *outflow = solver.measures.iolet_flow()
    fraction = outflow[0] / sum(outflow)
    return [
        Check(
            "symmetric bifurcation: share of one daughter minus one half",
            abs(fraction - 0.5),
            1e-3,
            reference=_SYMMETRY,
        ),
        Check("symmetric bifurcation: inflow minus outflow", abs(sum(outflow) / inflow + 1), 1e-3, reference=_SYMMETRY),
    ]
