# SPDX-License-Identifier: BSD-3-Clause
"""Regions of an ultrasound medium: averages over cells at boundaries, exact values elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seiche.case.ultrasound.medium import medium_of
from seiche.case.ultrasound.regions import _sharpened
from seiche.case.ultrasound.schema import MediumTable
from seiche.ultrasound import Grid, Medium

HEAVY = {"density": "2000 kg/m^3", "sound_speed": "3000 m/s"}


def medium(shape: tuple[int, ...], *regions: dict[str, Any], **keys: Any) -> Medium:
    table = {"density": "1000 kg/m^3", "sound_speed": "1500 m/s", "region": list(regions), **keys}
    return medium_of(MediumTable.model_validate(table), Grid(shape, 1e-3), Path())


def box(lower: list[str], upper: list[str], **properties: Any) -> dict[str, Any]:
    return {"kind": "box", "lower": lower, "upper": upper, **(properties or HEAVY)}


def test_a_layer_thinner_than_a_cell_has_its_exact_share() -> None:
    one = medium((16, 4), box(["0.11 mm", "-9 mm"], ["0.17 mm", "9 mm"]))
    density, speed = np.asarray(one.density), np.asarray(one.sound_speed)
    assert density.mean(1).sum() - 16e3 == pytest.approx(0.06 * 1e3, rel=1e-9)
    compliance = (1 / (density * speed**2)).mean(1).sum()
    soft, stiff = 1 / (1000 * 1500.0**2), 1 / (2000 * 3000.0**2)
    assert compliance == pytest.approx(15.94 * soft + 0.06 * stiff, rel=1e-12)
    assert one.staggered_density is not None
    assert np.asarray(one.staggered_density[0]).mean(1).sum() - 16e3 == pytest.approx(0.06 * 1e3, rel=1e-9)


def test_the_volume_of_a_ball_is_that_of_its_averages() -> None:
    ball = {"kind": "ball", "center": ["0.3 mm", "-0.2 mm", "0.1 mm"], "radius": "5 mm", **HEAVY}
    averaged, stairs = (np.asarray(medium((16,) * 3, ball, average=way).density) for way in (True, False))
    volume = 4 / 3 * np.pi * 125
    assert (averaged / 1000 - 1).sum() == pytest.approx(volume, rel=1e-3)
    assert abs((stairs / 1000 - 1).sum() - volume) > abs((averaged / 1000 - 1).sum() - volume)


def test_regions_that_share_a_cell_leave_nothing_of_the_medium_below() -> None:
    remaining, right = (box([a, "-9 mm"], [b, "9 mm"]) for a, b in (("-3 mm", "0.2 mm"), ("0.2 mm", "3 mm")))
    full = np.asarray(medium((16, 4), remaining, right).density)
    np.testing.assert_allclose(full[6:11], 2000.0, rtol=1e-14)


def test_the_last_region_counts_and_keeps_what_it_does_not_replace() -> None:
    inner = box(["-1.5 mm", "-9 mm"], ["1.5 mm", "9 mm"], density="1500 kg/m^3")
    one = medium((16, 4), box(["-4.5 mm", "-9 mm"], ["4.5 mm", "9 mm"]), inner)
    assert np.asarray(one.density)[8, 0] == 1500.0
    assert np.asarray(one.sound_speed)[8, 0] == 3000.0


def test_points_away_from_boundaries_have_exact_values() -> None:
    ball = {"kind": "ball", "center": ["0.3 mm", "-0.2 mm"], "radius": "5 mm", **HEAVY}
    averaged, stairs = (medium((24, 20), ball, average=way) for way in (True, False))
    grid = Grid((24, 20), 1e-3)
    x, y = np.meshgrid(grid.positions("x"), grid.positions("y"), indexing="ij")
    far = abs(np.hypot(x - 0.3e-3, y + 0.2e-3) - 5e-3) > 1.8e-3
    for name in ("density", "sound_speed"):
        np.testing.assert_array_equal(np.asarray(getattr(averaged, name))[far], np.asarray(getattr(stairs, name))[far])
    assert stairs.staggered_density is None


def test_regions_of_the_same_medium_keep_every_bit() -> None:
    same = {"density": "1000 kg/m^3", "sound_speed": "1500 m/s"}
    one = medium((16, 12), {"kind": "ball", "center": ["0.3 mm", "0 mm"], "radius": "3.3 mm", **same})
    assert (np.asarray(one.density) == 1000.0).all() and (np.asarray(one.sound_speed) == 1500.0).all()
    assert all((np.asarray(field) == 1000.0).all() for field in one.staggered_density or ())


def test_media_from_files_and_relaxing_media_keep_values_at_points(tmp_path: Path) -> None:
    np.savez(tmp_path / "medium.npz", sound_speed=np.full((16, 12), 1520.0), density=np.full((16, 12), 1010.0))
    ball = {"kind": "ball", "center": ["0.3 mm", "0 mm"], "radius": "3.3 mm", **HEAVY}
    one = medium((16, 12), ball, file=str(tmp_path / "medium.npz"))
    assert set(np.unique(np.asarray(one.density))) == {1010.0, 2000.0}
    one = medium((16, 12), ball, alpha_mode="relaxation", alpha_power=1.0, alpha_coeff=0.5)
    assert set(np.unique(np.asarray(one.density))) == {1000.0, 2000.0}


def test_sharpening_changes_values_by_an_eighth_at_most_and_keeps_sums() -> None:
    values = 1.0 + np.random.default_rng(1).random((9, 7)) * 0.1
    sharp = _sharpened(values)
    assert sharp.sum() == pytest.approx(values.sum(), rel=1e-13)
    step = np.repeat([1.0, 1e5], 5)
    np.testing.assert_allclose(_sharpened(step), [1, 1, 1, 1, 0.875, 1e5 + 99999 / 24, 1e5, 1e5, 1e5, 1e5])


def test_a_medium_does_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seiche.case.ultrasound.regions._CHUNK", 1 << 8)
    ball = {"kind": "ball", "center": ["0.3 mm", "-0.2 mm", "0.1 mm"], "radius": "5 mm", **HEAVY}
    media = []
    for threads in ("1", "4"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        media.append(medium((16,) * 3, ball))
    one, four = media
    assert one.staggered_density is not None and four.staggered_density is not None
    fields = zip((one.sound_speed, *one.staggered_density), (four.sound_speed, *four.staggered_density), strict=True)
    assert all(np.array_equal(first, second) for first, second in fields)
