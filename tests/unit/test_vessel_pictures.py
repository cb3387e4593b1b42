# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of flow in a vessel: straight openings, directions, and both panels at one scale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

from seiche.case.flow.picture import _slice_ends
from seiche.domain.shapes import duct, tube
from seiche.report import figures
from seiche.report.figures import DrawnSurface, PlaneSlice, SliceEnd, plane_slice, vessel_figure
from seiche.report.plane_panel import draw_plane
from seiche.report.style import new_figure


def channel_slice(across: float = 0.0) -> PlaneSlice:
    """Return a slice of 30 x 10 sites with a parabolic flow to the right, at a spacing of 0.2 mm, with two openings."""
    row = np.arange(10) - 4.5
    profile = np.repeat((1 - (row / 5) ** 2)[:, None], 30, axis=1)
    vectors = np.stack([profile, across * profile], axis=-1)
    ends = (SliceEnd((1e-3, 0.0), (1.0, 0.0), 1e-3), SliceEnd((7e-3, 0.0), (-1.0, 0.0), 1e-3))
    origin = (1e-3 + 0.1e-3, -0.9e-3)
    return PlaneSlice(np.linalg.norm(vectors, axis=-1), 0.2e-3, "speed (m/s)", 0, 2, vectors, origin, ends)


def wall() -> DrawnSurface:
    """Return a tube of radius 1 mm along x from 1 to 7 mm."""
    angle = np.arange(40) * np.pi / 20
    ring = np.stack([0 * angle, np.cos(angle), np.sin(angle)], axis=1)
    vertices = 1e-3 * np.concatenate([ring + np.array([1.0, 0, 0]), ring + np.array([7.0, 0, 0])])
    a, b = np.arange(40), np.roll(np.arange(40), -1)
    faces = np.concatenate([np.stack([a, b, a + 40], 1), np.stack([b, b + 40, a + 40], 1)])
    view, up = channel_slice().front()
    return DrawnSurface(vertices, faces, np.ones(len(vertices)), view=view, up=up)


def drawn(plane: PlaneSlice, surface: DrawnSurface, monkeypatch: pytest.MonkeyPatch) -> Figure:
    stored: list[Figure] = []
    monkeypatch.setattr(figures, "store", lambda figure, *arguments: stored.append(figure))
    vessel_figure(Path("a.png"), plane=plane, surface=surface)
    return stored[0]


def test_the_outline_has_corners_at_the_openings() -> None:
    plane = channel_slice()
    axes = new_figure(6.0, 3.0).add_subplot()
    draw_plane(axes, plane, plane.limits)
    outline = np.concatenate([path.vertices for path in axes.collections[0].get_paths()])
    assert outline.min(axis=0) == pytest.approx([1.0, -1.0], abs=0.02)
    assert outline.max(axis=0) == pytest.approx([7.0, 1.0], abs=0.02)
    for corner in ((1, -1), (1, 1), (7, -1), (7, 1)):
        assert np.linalg.norm(outline - corner, axis=1).min() < 0.03  # a seventh of a spacing


def test_both_panels_have_one_scale_and_lie_below_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = drawn(channel_slice(), wall(), monkeypatch)
    figure.canvas.draw()
    first, second = figure.axes[0], figure.axes[1]
    assert (first.get_xlim(), first.get_ylim()) == (second.get_xlim(), second.get_ylim())
    boxes = [axes.get_window_extent() for axes in (first, second)]
    assert boxes[0].width == pytest.approx(boxes[1].width, rel=0.01) and boxes[0].y0 > boxes[1].y1
    low, high = first.get_xlim()
    assert low < 1.0 and high > 7.0
    labels = [text.get_text() for text in first.texts if text.get_text()]
    assert labels == ["x", "z"]
    bar = second.get_ylim()[0]
    assert bar < -1.3  # room for the bar below the vessel


def test_arrows_point_along_the_flow_and_vanish_across_it(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = drawn(channel_slice(across=0.5), wall(), monkeypatch)
    (arrows,) = (artist for artist in figure.axes[0].collections if isinstance(artist, Quiver))
    assert (arrows.U > 0).all() and np.allclose(arrows.V, 0.5 * arrows.U)
    turned = drawn(channel_slice(across=0.5).transposed(), wall(), monkeypatch)
    (arrows,) = (artist for artist in turned.axes[0].collections if isinstance(artist, Quiver))
    assert (arrows.V > 0).all() and np.allclose(arrows.U, 0.5 * arrows.V)
    coords = np.stack(np.meshgrid(np.arange(20), [0], np.arange(8), indexing="ij"), -1).reshape(-1, 3)
    along_y = np.tile([0.0, 1.0, 1e-9], (len(coords), 1))
    none = drawn(plane_slice(coords, along_y, 1e-3, normal=1, index=0), wall(), monkeypatch)
    assert not any(isinstance(artist, Quiver) for artist in none.axes[0].collections)


def test_openings_and_periodic_ends_meet_the_plane_where_they_are() -> None:
    axis = np.array([1.0, 0.4, 0.3]) / np.linalg.norm([1.0, 0.4, 0.3])
    sites = tube(1.0, 6.0, 0.2, axis=tuple(axis))
    height = 0.1
    ends = _slice_ends(sites, 0, 1, height)
    assert len(ends) == 1  # the outlet is 1.6 above the plane
    center, normal = np.array([*ends[0].center, height]), np.array([*ends[0].normal, 0.0])
    assert center @ axis == pytest.approx(0.0, abs=1e-12)  # in the plane of the inlet
    np.testing.assert_allclose(normal[:2], axis[:2] / np.linalg.norm(axis[:2]))
    periodic = duct(2.0, 2.0, 6.0, 0.5, periodic=True)
    assert [(end.center[0], end.normal) for end in _slice_ends(periodic, 0, 1, 1.0)] == [
        (pytest.approx(0.0, abs=1e-12), (1.0, 0.0)),
        (pytest.approx(6.0), (-1.0, 0.0)),
    ]
