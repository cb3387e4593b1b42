# SPDX-License-Identifier: BSD-3-Clause
"""Results with dimensions, coordinates and units: the same numbers as `fields` and the files, at the right places."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from seiche.case import new
from seiche.case.blood.labelled import ellipsoids
from seiche.case.kinds import KINDS
from seiche.case.labels import Labelled, LabelledArrays
from seiche.case.loading import load
from seiche.case.simulation import Simulation
from seiche.cells.mesh import icosphere
from seiche.errors import CaseError


def finished(kind: str, folder: Path, *changes: str) -> Simulation:
    simulation = load(new.TEMPLATES / f"{kind}.toml", overrides=changes, output=folder)
    simulation.run(visible=False)
    return simulation


def test_flow_is_a_dense_grid_with_positions_and_flow_rates(tmp_path: Path) -> None:
    with finished("flow", tmp_path, "time={ steps = 20 }", "iolet.inlet.ramp=5") as simulation:
        result = simulation.result("velocity", "pressure", "stress")
        sites, fields = simulation.solver.sites, simulation.fields("velocity", "stress")
        rates = simulation.case_run.monitor.record
    velocity = result["velocity"]
    assert velocity.dims == ("x", "y", "z", "component") and velocity.unit == "m/s"
    assert result["stress"].values.shape == (*sites.shape, 6)
    i, j, k = sites.coords.T
    np.testing.assert_array_equal(velocity.values[i, j, k], fields["velocity"])
    assert np.isfinite(result["pressure"].values).sum() == len(sites)
    position = sites.origin + sites.spacing * sites.coords[7]
    actual = [result.coordinates[axis].values[index] for axis, index in zip("xyz", sites.coords[7], strict=True)]
    np.testing.assert_allclose(actual, position, rtol=1e-12)
    assert list(result.coordinates["iolet"].values) == ["inlet", "outlet"]
    np.testing.assert_array_equal(result["flow_rate"].values, np.stack(rates.flows))
    assert len(result.coordinates["record_time"].values) == len(rates.times) > 0


def test_records_of_ultrasound_begin_at_time_zero_with_the_initial_pressure(tmp_path: Path) -> None:
    record = 'record={ points = [["-1.5 mm", "0.8 mm"]], maps = ["p_max_all"] }'
    with finished("ultrasound", tmp_path, record, "grid.duration='2 us'") as simulation:
        result, dt = simulation.result("pressure", "velocity"), simulation.setup.dt
        fields, initial = simulation.fields("pressure"), simulation.setup.problem.initial_pressure
    x, y, times = (result.coordinates[name].values for name in ("x", "y", "record_time"))
    position = np.abs(x + 1.5e-3).argmin(), np.abs(y - 0.8e-3).argmin()
    assert result["p"].dims == ("sensor", "record_time") and result["p"].unit == "Pa"
    assert times[0] == 0.0 and times[1] == dt
    assert result["p"].values[0, 0] == pytest.approx(initial[position], rel=1e-5)
    assert result["p_max_all"].dims == ("x", "y") and result["velocity"].dims == ("x", "y", "component")
    np.testing.assert_array_equal(result["pressure"].values, fields["pressure"])


def test_seismograms_have_the_times_and_values_of_the_file(tmp_path: Path) -> None:
    with finished("waves", tmp_path, "time={ steps = 30 }") as simulation:
        result = simulation.result()
        fields, positions = simulation.fields(), simulation.solver.positions
    with h5py.File(tmp_path / "receivers.h5") as file:
        times, samples = file["time"][:], file["samples"][:]
        names = list(file["field"].asstr())
    np.testing.assert_array_equal(result.coordinates["record_time"].values, times)
    for k, name in enumerate(names):
        np.testing.assert_array_equal(result[f"receiver_{name}"].values.T, samples[:, :, k])
    assert list(result.coordinates["receiver"].values) == ["A"]
    np.testing.assert_array_equal(result["velocity"].values, fields["velocity"])
    np.testing.assert_array_equal(result.coordinates["y"].values, positions[..., 1])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_becomes_a_dataset_with_units(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("xarray")
    steps = "grid={ shape = [64, 64], spacing = '0.2 mm', steps = 5 }" if kind == "ultrasound" else "time={ steps = 5 }"
    changes = [steps, *(["iolet.inlet.ramp=5"] if kind == "flow" else [])]
    with finished(kind, tmp_path, *changes) as simulation:
        result = simulation.result()
    dataset = result.to_xarray()
    assert set(dataset.data_vars) == set(result) and dataset.attrs["time"] == result.time > 0
    for name, item in {**result, **result.coordinates}.items():
        assert dataset[name].dims == item.dims and dataset[name].attrs.get("units", "") == item.unit
        np.testing.assert_array_equal(dataset[name].values, item.values)
    assert all(item.unit for item in result.values())


def test_waves_on_a_regular_grid_are_the_polynomials_of_the_elements(tmp_path: Path) -> None:
    with finished("waves", tmp_path, "time={ steps = 3 }") as simulation:
        places = simulation.solver.positions
        x, y = places[..., 0], places[..., 1]
        state = np.zeros((len(places), len(simulation.solver.unknowns), places.shape[1]))
        state[:, 0], state[:, 1] = 3e-6 * x**2 * y - 2.0, 1e-9 * y**3 + x
        simulation.solver.start_from(state)
        result, plane = simulation.result("velocity", spacing=125.0), simulation.result(shape=(5, 9))
        for grid, message in (
            ({"shape": (5, 5, 5)}, "the case has 2 axes"),
            ({"spacing": 1.0, "shape": (5, 5)}, "either spacing"),
            ({"spacing": -1.0}, "must be positive"),
            ({"shape": (1, 5)}, "at least 2"),
            ({"spacing": 1e-3}, "grid of 2000001 x 1000001 points"),
        ):
            with pytest.raises(CaseError, match=message):
                simulation.result(**grid)
    assert result["velocity"].dims == ("x", "y", "component") and result["velocity"].values.shape == (17, 9, 2)
    x, y = np.meshgrid(result.coordinates["x"].values, result.coordinates["y"].values, indexing="ij")
    assert (x[-1, 0], y[0, 0], y[0, -1]) == (2000.0, -1000.0, 0.0)
    expected = np.stack([3e-6 * x**2 * y - 2.0, 1e-9 * y**3 + x], axis=-1)
    np.testing.assert_allclose(result["velocity"].values, expected, rtol=1e-5, atol=1e-3)  # float32
    assert plane["pressure"].dims == ("x", "y") and plane["pressure"].values.shape == (5, 9)
    assert "receiver_vx" in plane


def test_velocities_of_leapfrog_have_their_own_times(tmp_path: Path) -> None:
    changes = ("time={ steps = 8, integrator = 'leapfrog' }", "mesh.flux='central'", "output.receivers.every=2")
    with finished("waves", tmp_path, *changes) as simulation:
        result, dt = simulation.result(), simulation.setup.dt
    times = {name: item.values for name, item in result.coordinates.items() if name.endswith("time")}
    np.testing.assert_allclose(times["record_time"], [2 * dt, 4 * dt, 6 * dt, 8 * dt])
    np.testing.assert_allclose(times["receiver_velocity_time"], times["record_time"] - dt / 2)
    assert times["velocity_time"] == pytest.approx(7.5 * dt)
    assert result.coordinates["receiver_x"].values == [1200.0]


def test_only_waves_are_interpolated(tmp_path: Path) -> None:
    with finished("flow", tmp_path, "time={ steps = 5 }", "iolet.inlet.ramp=5") as simulation:
        with pytest.raises(CaseError, match="are for waves; fields of flow are on the grid of the solver"):
            simulation.result(spacing=1e-3)


def test_cells_have_positions_shapes_volumes_and_deformation(tmp_path: Path) -> None:
    fine = "cells=[{ name = 'red', shape = { kind = 'biconcave', vertices = 642 } }]"
    packing = "packing={ hematocrit = 0.2, seed = 2 }"
    with finished("blood", tmp_path, "time={ steps = 4 }", packing, fine) as simulation:
        result, statistics = simulation.result("pressure"), simulation.case_run.blood.statistics
    count = result["cell_volume"].values.size
    assert count > 1 and list(result.coordinates["cell"].values) == list(range(count))
    assert set(result.coordinates["cell_type"].values) == {"red"}
    np.testing.assert_array_equal(result["hematocrit"].values, statistics.hematocrits)
    assert result.coordinates["cell_time"].values[-1] == pytest.approx(simulation.time)
    # The cells are still almost at rest: 7.8 um long and flat.
    np.testing.assert_allclose(2 * result["cell_semi_axes"].values[:, 0], 8.0e-6, rtol=0.1)
    assert (np.diff(result["cell_semi_axes"].values) < 0).all() and (result["cell_deformation"].values > 0.4).all()
    corners = result["vertex_position"].values[result["triangle_vertices"].values]
    volumes = np.einsum("fi,fi->f", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6
    of_cell = np.bincount(result.coordinates["triangle_cell"].values, volumes)
    np.testing.assert_allclose(of_cell, result["cell_volume"].values, rtol=0.01)  # flat triangles lie inside
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) / 2
    of_cell = np.bincount(result.coordinates["triangle_cell"].values, areas)
    np.testing.assert_allclose(of_cell, result["cell_area"].values, rtol=0.01)


def test_the_ellipsoid_of_an_ellipsoid_is_itself() -> None:
    sphere = icosphere(2562)
    axes, turn = np.array([3.0, 2.0, 0.5]), np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turn *= np.linalg.det(turn)
    bodies = np.stack([sphere.vertices * axes @ turn.T + [1.0, -2.0, 5.0], 2.0 * sphere.vertices])
    centers, result = ellipsoids(bodies, sphere.faces)
    np.testing.assert_allclose(centers, [[1.0, -2.0, 5.0], [0.0, 0.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(result, [[3.0, 2.0, 0.5], [2.0, 2.0, 2.0]], rtol=0.01)


def test_forces_and_mass_have_their_times(tmp_path: Path) -> None:
    changes = (
        "time={ steps = 40 }",
        "iolet.inlet.ramp=5",
        "output.record_every=10",
        "output.force=[{ name = 'wall' }]",
    )
    with finished("flow", tmp_path, *changes) as simulation:
        result, record = simulation.result("pressure"), simulation.case_run.monitor.record
    assert result["wall_force"].dims == ("record_time", "body", "component") and result["wall_force"].unit == "N"
    assert list(result.coordinates["body"].values) == ["wall"]
    np.testing.assert_array_equal(result["wall_force"].values[:, 0], np.array(record.forces["wall"])[:, :3])
    np.testing.assert_array_equal(result["wall_torque"].values[:, 0], np.array(record.forces["wall"])[:, 3:])
    assert result["mass"].values.size == result.coordinates["check_time"].values.size >= 1
    assert result.coordinates["check_time"].values[-1] == pytest.approx(40 * simulation.setup.dt)


def test_a_result_says_names_dimensions_units_and_ranges() -> None:
    pressure = Labelled(np.array([1.0, np.nan, 3.0]), ("x",), "Pa")
    result = LabelledArrays("a <b>", 0.5, {"pressure": pressure}, {"x": Labelled(np.arange(3.0), ("x",), "m")})
    assert repr(result).splitlines() == [
        "a <b>, 0.5 s",
        "arrays:",
        "  pressure  (x: 3) [Pa] float64, 1 to 3",
        "coordinates:",
        "  x  (x: 3) [m] float64, 0 to 2",
    ]
    page = result._repr_html_()
    assert "a &lt;b&gt;" in page and "<td>Pa</td>" in page and "1 to 3" in page
    with pytest.raises(ValueError, match="cannot have the dimensions"):
        Labelled(np.zeros((2, 2)), ("x",), "Pa")


def test_an_unknown_name_is_an_error_of_the_case(tmp_path: Path) -> None:
    with finished("flow", tmp_path, "time={ steps = 5 }", "iolet.inlet.ramp=5") as simulation:
        with pytest.raises(CaseError, match="'vorticity'"):
            simulation.result("vorticity")


@pytest.mark.parametrize("kind", KINDS)
def test_simulations_pictures_and_unknown_names_say_what_they_are(kind: str, tmp_path: Path) -> None:
    changes = ["grid.steps=3"] if kind == "ultrasound" else ["time.steps=3"]
    changes += ["iolet.inlet.ramp=2"] if kind == "flow" else []
    changes += ["cells.red.shape.vertices=42"] if kind == "blood" else []
    with load(new.TEMPLATES / f"{kind}.toml", overrides=changes, output=tmp_path) as simulation:
        simulation.run(steps=2, visible=False)
        solver, dt = simulation.solver, simulation.setup.dt
        size = f"{solver.total_items:,} {solver.item}, step 2 of 3, {2 * dt:.4g} of {3 * dt:.4g} s"
        assert repr(simulation) == f'<{kind} simulation "NAME": {size}; output in {tmp_path}>'
        result = simulation.result()
    picture = repr(result.plot())
    assert picture.startswith("<picture of ") and "mm: NAME, " in picture and picture.endswith("save(path) writes it>")
    with pytest.raises(KeyError, match=f"'nope' is not in this result; it has {next(iter(result))}"):
        result["nope"]
