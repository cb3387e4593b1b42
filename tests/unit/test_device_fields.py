# SPDX-License-Identifier: BSD-3-Clause
"""Fields on the device in callbacks of every kind of case: the bits of the host, without copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seiche
from case_files import changed, toml_of, tube_tables
from prediction_cases import case_file
from seiche.case.simulation import Simulation
from seiche.errors import CaseError

#: Fields of each kind.
KINDS = {kind: ["pressure", "velocity"] for kind in ("flow", "blood", "ultrasound", "waves")}
ALL_FLOW = ["pressure", "density", "velocity", "shear_rate", "stress", "wall_shear_stress", "traction", "viscosity"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No measurement of the memory's speed after each of these small runs."""
    monkeypatch.setattr("seiche.case.simulation.copy_bandwidth", lambda *_: 1e10)


def written(folder: Path, tables: dict[str, Any]) -> Path:
    """Return a case file of these tables."""
    path = folder / "case.toml"
    path.write_text(toml_of(tables))
    return path


#: Incident fields of point sources are added in arrays of their own, and through the host.
OVERRIDES = {"waves": ("run.source_model=delta",)}


def same_on_device(sim: Simulation, names: list[str]) -> dict[str, Any]:
    """Check that fields on the device equal those on the host, through each protocol; return them."""
    host, device = sim.fields(names), sim.device_fields(names)
    assert list(device) and set(device) == set(names)
    for name in names:
        array = device[name]
        if hasattr(array, "__cuda_array_interface__"):
            cupy = pytest.importorskip("cupy")
            interface = array.__cuda_array_interface__
            assert interface["version"] == 3 and interface["stream"] == (cupy.cuda.get_current_stream().ptr or 1)
            result = cupy.from_dlpack(array)
            assert result.data.ptr == array.data.ptr == interface["data"][0]
            result = cupy.asnumpy(result)
        else:
            assert array.__dlpack_device__() == (1, 0)
            result = np.from_dlpack(array)
            assert np.shares_memory(result, array)
            assert result.__array_interface__["data"][0] == array.__array_interface__["data"][0]
        assert result.dtype == array.dtype
        np.testing.assert_array_equal(result, host[name], err_msg=name)
        assert np.abs(result).max() > 0 or name == "wall_shear_stress", name
    return device


@pytest.mark.parametrize("kind", KINDS)
def test_a_callback_gets_arrays_of_the_device(kind: str, device: str, tmp_path: Path) -> None:
    names, steps = KINDS[kind], []
    with seiche.load(case_file(tmp_path, kind), device=device, output=tmp_path / "out") as sim:

        @sim.every(steps=4)
        def compare(sim: Simulation) -> None:
            same_on_device(sim, names)
            steps.append(sim.step)

        sim.run(steps=8)
        assert steps == [4, 8]
        assert set(sim.device_fields()) == set(sim.fields())
        with pytest.raises(CaseError, match=f"'nothing' is not a field of solver = '{kind}'"):
            sim.device_fields("nothing")


@pytest.mark.parametrize("kind", ["ultrasound", "waves"])
def test_what_a_solver_stores_is_not_copied(kind: str, tmp_path: Path) -> None:
    with seiche.load(case_file(tmp_path, kind), output=tmp_path / "out", overrides=OVERRIDES.get(kind, ())) as sim:
        views = [sim.device_fields(KINDS[kind]) for _ in range(2)]
        for name in KINDS[kind]:
            assert np.shares_memory(views[0][name], views[1][name]), name
        before = views[0]["pressure"].copy()
        sim.run(steps=6)
        assert not np.array_equal(views[0]["pressure"], before)  # the memory of the state itself
        np.testing.assert_array_equal(views[0]["pressure"], sim.fields("pressure")["pressure"])


@pytest.mark.parametrize("layout", ["tiles-8", "list-aa", "moments"])
def test_fields_of_flow_on_the_device_are_those_of_the_host_in_every_layout(
    layout: str, device: str, tmp_path: Path
) -> None:
    lattice = {"tau": 0.8, "layout": layout, **({"collision": "regularised"} if layout == "moments" else {})}
    tables = changed(tube_tables(), "lattice", lattice)
    with seiche.load(written(tmp_path, tables), device=device, output=tmp_path / "out") as sim:
        sim.run(steps=7)
        result = same_on_device(sim, ALL_FLOW)
        assert result["stress"].shape == (sim.solver.items, 6)
        assert float(abs(result["wall_shear_stress"]).max()) > 0


@pytest.mark.parametrize("kind", ["flow", "waves"])
def test_derived_fields_use_the_same_memory_in_every_callback(
    kind: str, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One array for each field, and on a GPU no copy to the host."""
    names = ALL_FLOW if kind == "flow" else ["pressure"]
    places, copied = list[list[Any]](), list[Any]()
    with seiche.load(
        case_file(tmp_path, kind), device=device, output=tmp_path / "out", overrides=OVERRIDES.get(kind, ())
    ) as sim:
        backend = type(sim.solver.backend)
        sim.fields(names)

        @sim.every(steps=2)
        def take(sim: Simulation) -> None:
            with monkeypatch.context() as patch:
                for name in ("download", "copy_to_host"):
                    patch.setattr(backend, name, lambda *arguments: copied.append(arguments))
                arrays = sim.device_fields(names)
            places.append([sim.solver.backend.pointer(arrays[name]) for name in names])
            for name, values in sim.fields(names).items():
                np.testing.assert_array_equal(sim.solver.backend.download(arrays[name]), values, err_msg=name)

        sim.run(steps=6)
    assert len(places) == 3 and places[0] == places[1] == places[2] and not copied
    assert len(set(places[0])) == len(names)


@pytest.mark.parametrize("rheology", ["newtonian", "carreau-yasuda"])
@pytest.mark.parametrize("layout", ["tiles-8", "list-ab"])
def test_the_viscosity_on_the_device_is_that_of_the_host(
    layout: str, rheology: str, device: str, tmp_path: Path
) -> None:
    tables = changed(tube_tables(), "lattice", {"step": "0.2 ms", "layout": layout})
    if rheology != "newtonian":
        tables["fluid"] = {"density": "1000 kg/m^3", "rheology": {"kind": rheology, "preset": "human"}}
    changes = ["run.precision.compute=float32"]
    with seiche.load(written(tmp_path, tables), device=device, overrides=changes, output=tmp_path / "out") as sim:
        sim.run(steps=9)
        result = same_on_device(sim, ["viscosity"])["viscosity"]
        assert bool((result == result[0]).all()) == (rheology == "newtonian")
