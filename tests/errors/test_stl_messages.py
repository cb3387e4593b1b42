# SPDX-License-Identifier: BSD-3-Clause
"""Cases whose vessel is an STL surface: errors of surface, unit or openings are one line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import changed, message_of, tube_tables, vessel_of
from seiche.domain.surface import Surface
from seiche.errors import FormatError
from seiche.io.formats.stl import write_stl


def prism(reverse: bool = False) -> Surface:
    """Return a closed octagonal prism of radius 1 and length 4 along x."""
    angle = np.arange(8) * np.pi / 4
    rim = np.stack([np.zeros(8), np.cos(angle), np.sin(angle)], axis=1)
    vertices = np.concatenate([rim, rim + np.array([4, 0, 0]), [[0, 0, 0], [4, 0, 0]]])
    faces = [(k, (k + 1) % 8, 8 + k) for k in range(8)] + [((k + 1) % 8, 8 + (k + 1) % 8, 8 + k) for k in range(8)]
    faces += [((k + 1) % 8, k, 16) for k in range(8)] + [(8 + k, 8 + (k + 1) % 8, 17) for k in range(8)]
    surface = Surface(vertices, np.array(faces, np.int32))
    outward = surface.volume > 0
    return surface if outward != reverse else Surface(vertices, np.array(faces, np.int32)[:, ::-1].copy())


def stl_tables(path: Path) -> dict[str, Any]:
    tables = changed(tube_tables(), "geometry", {"spacing": "0.2 mm", "stl": str(path), "unit": "1 mm"})
    tables["iolet"][0] |= {"center": ["0 mm", "0 mm", "0 mm"], "normal": [1, 0, 0], "radius": "1 mm"}
    tables["iolet"][1] |= {"center": ["4 mm", "0 mm", "0 mm"], "normal": [-2, 0, 0], "radius": "1 mm"}
    return tables


def test_an_stl_needs_its_unit_and_the_positions_of_its_openings(tmp_path: Path) -> None:
    write_stl(tmp_path / "a.stl", prism())
    tables = changed(changed(tube_tables(), "geometry.shape", None), "geometry.stl", str(tmp_path / "a.stl"))
    assert message_of(tables) == 'geometry: the length unit of an STL file is unknown; add the key unit, such as "1 mm"'
    assert message_of(changed(tables, "geometry.unit", "1 mm")) == (
        'iolet["inlet"].center: is missing; the surface has no open rim, so center, normal and radius are required'
    )


def test_an_stl_becomes_a_vessel(tmp_path: Path) -> None:
    path = tmp_path / "prism.stl"
    write_stl(path, prism())
    vessel = vessel_of(stl_tables(path))
    # Area of the octagon 2 sqrt(2) r^2, length 4 mm, spacing 0.2 mm.
    assert len(vessel.sites) == pytest.approx(2 * 2**0.5 * 4 / 0.2**3, rel=0.05)
    assert vessel.surface is not None
    assert vessel.surface.vertices[:, 0].max() == pytest.approx(4e-3)
    assert [plane.role for plane in vessel.sites.iolets] == ["inlet", "outlet"]


def test_an_stl_that_is_inside_out_is_reversed_with_a_note(tmp_path: Path) -> None:
    path = tmp_path / "prism.stl"
    write_stl(path, prism())
    expected = vessel_of(stl_tables(path))
    write_stl(path, prism(reverse=True))
    vessel = vessel_of(stl_tables(path))
    assert [note for note in vessel.notes if "inside out" in note and "reversed" in note]
    assert vessel.sites.fingerprint == expected.sites.fingerprint
    assert vessel.surface is not None and vessel.surface.volume > 0


def test_a_periodic_stl_needs_no_opening(tmp_path: Path) -> None:
    path = tmp_path / "prism.stl"
    write_stl(path, prism())
    tables = changed(changed(stl_tables(path), "geometry.periodic", ["x"]), "iolet", None)
    vessel = vessel_of(tables)
    assert vessel.sites.periodic == (True, False, False) and vessel.sites.shape[0] == 20
    assert message_of(changed(tables, "geometry.spacing", "0.3 mm")).startswith(
        "geometry: the surface is 0.004 m long along the periodic axis x, not a whole number of spacings"
    )
    assert message_of(changed(tube_tables(), "geometry.periodic", ["x"])) == (
        "geometry: the key periodic is only allowed with stl and image; built-in shapes have their own"
    )


def test_an_iolet_that_touches_no_site_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "prism.stl"
    write_stl(path, prism())
    far = changed(stl_tables(path), "iolet.1.center", ["9 mm", "0 mm", "0 mm"])
    assert message_of(far) == 'geometry: iolet "outlet" touches no site; check its center, normal and radius'


def test_a_broken_stl_is_a_format_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "prism.stl"
    write_stl(path, prism())
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(FormatError) as caught:
        vessel_of(stl_tables(path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
