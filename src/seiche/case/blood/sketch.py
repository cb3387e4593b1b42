# SPDX-License-Identifier: BSD-3-Clause
"""Picture of a blood case before it runs: the vessel with the initial positions of the cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from seiche.case.blood.series import periodic_box
from seiche.case.blood.setup import BloodSetup
from seiche.case.flow.sketch import flow_picture
from seiche.couple.suspension import packed_populations
from seiche.report.case_figure import CasePicture, Group


def blood_picture(setup: BloodSetup) -> CasePicture:
    """Return the picture of a case; CaseError if no sites of the vessel are generated."""
    picture, cells, sites = flow_picture(setup), setup.cells, setup.vessel.sites
    if cells is None or cells.packing is None:
        return picture
    groups = list(picture.groups)
    for kind, (cell_type, population) in enumerate(zip(cells.types, packed_populations(cells), strict=True)):
        centers = np.asarray(sites.origin) + sites.spacing * cells.packing.of_kind(kind)[0]
        if len(centers):
            bodies = np.asarray(sites.origin) + sites.spacing * np.asarray(population.vertices, np.float64)
            groups.append(Group(f"{len(centers)} {cell_type.name}", centers, ".", bodies=bodies))
    return replace(picture, groups=groups, periodic_box=periodic_box(setup.vessel.sites))
