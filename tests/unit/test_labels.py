# SPDX-License-Identifier: BSD-3-Clause
"""Results with dimensions, coordinates and units: the same numbers as `fields` and the files, at the right places."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from seiche.case import new
from seiche.case.kinds import KINDS
from seiche.case.labels import Labelled, LabelledArrays
from seiche.case.loading import load
from seiche.case.simulation import Simulation
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
    place = sites.origin + sites.spacing * sites.coords[7]
    found = [result.coordinates[axis].values[index] for axis, index in zip("xyz", sites.coords[7], strict=True)]
    np.testing.assert_allclose(found, place, rtol=1e-12)
    assert list(result.coordinates["iolet"].values) == ["inlet", "outlet"]
    np.testing.assert_array_equal(result["flow_rate"].values, np.stack(rates.flows))
    assert len(result.coordinates["record_time"].values) == len(rates.times) > 0


def test_records_of_ultrasound_begin_at_time_zero_with_the_initial_pressure(tmp_path: Path) -> None:
    record = 'record={ points = [["-1.5 mm", "0.8 mm"]], maps = ["p_max_all"] }'
    with finished("ultrasound", tmp_path, record, "grid.duration='2 us'") as simulation:
        result, dt = simulation.result("pressure", "velocity"), simulation.setup.dt
        fields, initial = simulation.fields("pressure"), simulation.setup.problem.initial_pressure
    x, y, times = (result.coordinates[name].values for name in ("x", "y", "record_time"))
    place = np.abs(x + 1.5e-3).argmin(), np.abs(y - 0.8e-3).argmin()
    assert result["p"].dims == ("sensor", "record_time") and result["p"].unit == "Pa"
    assert times[0] == 0.0 and times[1] == dt
    assert result["p"].values[0, 0] == pytest.approx(initial[place], rel=1e-5)
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


def test_several_ranks_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with finished("flow", tmp_path, "time={ steps = 5 }", "iolet.inlet.ramp=5") as simulation:
        with monkeypatch.context() as changed:
            changed.setattr(simulation, "world", SimpleNamespace(size=2))
            with pytest.raises(CaseError, match="requires one rank, not 2"):
                simulation.result()


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
