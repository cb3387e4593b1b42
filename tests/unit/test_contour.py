# SPDX-License-Identifier: BSD-3-Clause
"""The contour of the fluid: closed, oriented, and the same for slabs of any thickness."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.case.flow import contour
from seiche.case.flow.contour import fluid_contour
from seiche.domain.shapes import duct, tube
from seiche.domain.sites import SiteSet
from seiche.errors import CaseError

VESSELS = {
    "tube": tube(5.0, 12.0, 0.5, axis=(1.0, 0.4, 0.2)),
    "periodic along z": tube(5.0, 12.0, 0.5, axis=(0.0, 0.0, 1.0), periodic=True),
    "duct": duct(4.0, 6.0, 12.0, 0.5),
}


@pytest.mark.parametrize("points", [1, 3000])
@pytest.mark.parametrize("sites", VESSELS.values(), ids=list(VESSELS))
def test_slabs_of_any_thickness_give_the_same_surface(
    sites: SiteSet, points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fluid_contour(sites)
    monkeypatch.setattr(contour, "_SLAB_POINTS", points)
    in_slabs = fluid_contour(sites)
    assert len(whole.faces) > 1000
    assert np.array_equal(in_slabs.vertices, whole.vertices)
    assert np.array_equal(in_slabs.faces, whole.faces)


@pytest.mark.parametrize("points", [1, 1 << 20])
def test_a_closed_contour_contains_the_volume_of_the_sites(points: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contour, "_SLAB_POINTS", points)
    sites = VESSELS["tube"]
    surface = fluid_contour(sites)
    assert surface.volume == pytest.approx(len(sites) * sites.spacing**3, rel=0.02)  # positive: normals point outwards
    edges = np.sort(surface.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    assert (np.unique(edges, axis=0, return_counts=True)[1] == 2).all()


def test_a_box_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contour, "MAX_POINTS", 1000)
    with pytest.raises(CaseError, match="too large for a wall; use an STL geometry"):
        fluid_contour(VESSELS["duct"])
