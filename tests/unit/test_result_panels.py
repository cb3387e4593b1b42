# SPDX-License-Identifier: BSD-3-Clause
"""Panels of pictures of results: order of sensors, colours beside sources, units, absorbing layers."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.case import new
from seiche.case.labels import Labelled, LabelledArrays
from seiche.case.loading import load
from seiche.errors import CaseError
from seiche.report.display_units import length_scale
from seiche.report.sensor_axis import sensor_axis


@pytest.fixture(scope="module")
def ultrasound(tmp_path_factory: pytest.TempPathFactory) -> LabelledArrays:
    with load(new.TEMPLATES / "ultrasound.toml", output=tmp_path_factory.mktemp("out")) as simulation:
        simulation.run(visible=False)
        return simulation.result()


@pytest.fixture(scope="module")
def waves(tmp_path_factory: pytest.TempPathFactory) -> LabelledArrays:
    with load(new.TEMPLATES / "waves.toml", output=tmp_path_factory.mktemp("out")) as simulation:
        simulation.run(visible=False)
        return simulation.result()


def test_sensors_of_a_ring_are_in_the_order_of_their_angles() -> None:
    angles = np.radians(np.random.default_rng(3).permutation(np.arange(5.0, 365.0, 10.0)))
    places = np.array([2e-3, -1e-3]) + 4e-3 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    axis = sensor_axis(36, places)
    assert axis.label == "angle on the ring (degrees)"
    np.testing.assert_allclose(axis.positions, np.arange(5.0, 365.0, 10.0), atol=1e-9)
    np.testing.assert_allclose(np.degrees(angles[axis.order]), axis.positions, atol=1e-9)
    half = places[places[:, 1] > -1e-3]  # a part of a ring
    assert sensor_axis(len(half), half).positions.max() == pytest.approx(175.0)


def test_sensors_on_a_line_are_in_the_order_of_their_distances() -> None:
    along = np.array([5.0, 1.0, 3.0, 0.0, 8.0])
    axis = sensor_axis(5, 1e-3 * along[:, None] * [0.6, 0.8] + 0.1)
    assert axis.label == "distance along the line (mm)"
    np.testing.assert_allclose(along[axis.order], np.sort(along) if axis.order[0] == 3 else -np.sort(-along))
    np.testing.assert_allclose(np.abs(np.diff(axis.positions)), np.abs(np.diff(along[axis.order])))


@pytest.mark.parametrize("places", [None, np.random.default_rng(1).random((9, 2)), np.eye(9)[:, :3]])
def test_other_sensors_keep_their_order(places: np.ndarray | None) -> None:
    axis = sensor_axis(9, places)
    assert axis.label == "sensor" and axis.order.tolist() == list(range(9))


def test_sensors_have_the_positions_where_their_signals_arrive(ultrasound: LabelledArrays) -> None:
    places = np.stack([ultrasound.coordinates[f"sensor_{axis}"].values for axis in "xy"], axis=1)
    pressure, times = ultrasound["p"].values, ultrasound.coordinates["record_time"].values
    assert len(places) == len(pressure)
    np.testing.assert_allclose(np.linalg.norm(places, axis=1), 4e-3, atol=0.05e-3 + 1e-12)
    peaks = pressure.max(axis=1, keepdims=True)
    arrivals = times[np.argmax(pressure > 0.5 * peaks, axis=1)]
    distances = np.linalg.norm(places - [-1.5e-3, 0.8e-3], axis=1) - 1e-3  # from the rim of the disc
    np.testing.assert_allclose(arrivals, distances / 1500.0, atol=0.1e-6)


def test_the_picture_of_a_ring_is_smooth_from_sensor_to_sensor(ultrasound: LabelledArrays) -> None:
    """Neighbouring rows of the image resemble each other; those in the order of the grid do not."""
    mesh = ultrasound.plot("p").figure.axes[0].collections[0]
    drawn = np.reshape(mesh.get_array(), ultrasound["p"].values.shape)

    def mean_step(rows: np.ndarray) -> float:
        return float(np.abs(np.diff(rows, axis=0)).mean() / np.abs(rows).mean())

    assert mean_step(drawn) < 0.3 * mean_step(ultrasound["p"].values)
    assert mesh.get_clim()[0] == -mesh.get_clim()[1]


def test_axes_and_titles_have_readable_units(ultrasound: LabelledArrays) -> None:
    figure = ultrasound.plot().figure
    assert figure.get_suptitle().endswith(" µs")
    panels = [axes for axes in figure.axes if axes.get_xlabel()]
    assert [axes.get_xlabel() for axes in panels] == ["x (mm)", "time (µs)"]
    assert [length_scale(extent)[1] for extent in (5e3, 30.0, 6e-3, 1e-4, 1.2e-5)] == ["km", "m", "mm", "µm", "µm"]


def test_absorbing_layers_are_outside_the_inner_part(ultrasound: LabelledArrays, waves: LabelledArrays) -> None:
    assert waves.coordinates["inner_lower"].values.tolist() == [0.0, -1000.0]
    assert waves.coordinates["inner_upper"].values.tolist() == [2000.0, 0.0]
    assert ultrasound.coordinates["inner_lower"].values == pytest.approx([-4.4e-3, -4.4e-3])
    panel = waves.plot().figure.axes[0]
    assert (panel.get_xlim(), panel.get_ylim()) == ((0.0, 2.0), (-1.0, 0.0))  # the layer is not drawn
    frame = next(line for line in ultrasound.plot().figure.axes[0].lines if line.get_label() == "absorbing layer")
    assert (min(frame.get_xdata()), max(frame.get_xdata())) == pytest.approx((-4.4, 4.3))


def test_the_elements_at_a_delta_do_not_determine_the_colours(waves: LabelledArrays) -> None:
    speed = np.linalg.norm(waves["velocity"].values, axis=1)
    x, y = (waves.coordinates[axis].values for axis in "xy")
    side = np.ptp(x, axis=1).max()
    inside = (x > 0).any(axis=1) & (x < 2000).any(axis=1) & (y > -1000).any(axis=1)
    offset = np.maximum(np.abs(x.mean(axis=1) - 700.0), np.abs(y.mean(axis=1) + 500.0))
    far = inside & (offset > 2.5 * np.ptp(x, axis=1))
    mesh = waves.plot().figure.axes[0].collections[0]
    top = mesh.get_clim()[1] * 1e-3
    assert side < 200.0 and 0.4 * speed[far].max() < top <= speed[far].max() * (1 + 1e-6)
    assert top < 0.8 * speed[inside].max()


def test_speed_is_the_magnitude_of_the_velocity(waves: LabelledArrays) -> None:
    by_name = waves.plot("speed").figure.axes[0].collections[0].get_array()
    np.testing.assert_array_equal(by_name, waves.plot("velocity").figure.axes[0].collections[0].get_array())
    with pytest.raises(CaseError, match=r"'vorticity' is not a field of this result; it has velocity, pressure, and "):
        waves.plot("vorticity")
    own = Labelled(np.ones((4, 3)), ("x", "y"), "m/s")
    coordinates = {"x": Labelled(np.arange(4.0), ("x",), "m"), "y": Labelled(np.arange(3.0), ("y",), "m")}
    assert LabelledArrays("own", 0.0, {"speed": own}, coordinates).plot("speed").figure.axes


@pytest.mark.parametrize("sides", [(20, 60), (60, 6), (30, 30)])
def test_a_field_fills_its_part_of_the_page(sides: tuple[int, int]) -> None:
    x, y = (1e-3 * np.arange(side) for side in sides)
    field = Labelled(np.add.outer(x, y), ("x", "y"), "Pa")
    record = Labelled(np.sin(np.arange(50.0))[:, None], ("record_time", "iolet"), "m^3/s")
    coordinates = {"x": Labelled(x, ("x",), "m"), "y": Labelled(y, ("y",), "m")}
    coordinates["record_time"] = Labelled(1e-3 * np.arange(50.0), ("record_time",), "s")
    for arrays in ({"pressure": field}, {"pressure": field, "flow_rate": record}):
        figure = LabelledArrays("own", 0.0, arrays, coordinates).plot().figure
        figure.canvas.draw()
        panels = [axes for axes in figure.axes if axes.get_xlabel()]
        assert len(panels) == len(arrays)
        boxes = np.array(
            [axes.get_tightbbox().transformed(figure.transFigure.inverted()).extents for axes in figure.axes]
        )
        # Beside the panels at most a fifth of the page is blank.
        assert boxes[:, 0].min() < 0.2 and boxes[:, 2].max() > 0.8
