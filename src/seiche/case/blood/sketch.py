# SPDX-License-Identifier: BSD-3-Clause
"""Picture of a blood case before it runs: the vessel with the initial positions of the cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from seiche.case.blood.setup import BloodSetup
from seiche.case.flow.sketch import flow_picture
from seiche.report.case_figure import CasePicture, Group


def blood_picture(setup: BloodSetup) -> CasePicture:
    """Return the picture of a case; CaseError if no sites of the vessel are generated."""
    picture, cells, sites = flow_picture(setup), setup.cells, setup.vessel.sites
    if cells is None or cells.packing is None:
        return picture
    groups = list(picture.groups)
    for kind, cell_type in enumerate(cells.types):
        centers = np.asarray(sites.origin) + sites.spacing * cells.packing.of_kind(kind)[0]
        if len(centers):
            groups.append(Group(f"{len(centers)} {cell_type.name}", centers, "."))
    return replace(picture, groups=groups)
