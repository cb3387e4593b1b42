# SPDX-License-Identifier: BSD-3-Clause
"""Cases of waves: from the file to seismograms, snapshots, peak velocities, checkpoints and pictures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from seiche.case.loading import load as load_waves
from seiche.case.loading import prepare
from seiche.cli import main
from seiche.errors import CaseError
from seiche.waves import Gaussian, Material, Mesh, SizeField, Solver
from seiche.waves.forest import Brick, Forest
from seiche.waves.planes import PlaneGrid
from seiche.waves.sizes import Generator
from waves_cases import ROCK

ROOT = Path(__file__).resolve().parents[2]
CASE = (
    ROCK.replace("nodes = 3", "nodes = 4").replace("1000 m/s", "1100 m/s")
    + """[[material]]
name = "soil"
density = "1600 kg/m^3"
cp = "900 m/s"
cs = "500 m/s"
where = { kind = "layer", bottom = "20 m", top = "30 m" }
[boundary]
upper = ["absorbing", "free"]
[[source]]
position = ["11 m", "9 m"]
moment = "1 MN m"
time = { kind = "ricker", frequency = "20 Hz" }
[[receiver]]
name = "TOP"
position = ["20 m", "30 m"]
[[receiver]]
name = "L"
start = ["5 m", "25 m"]
end = ["35 m", "25 m"]
count = 3
[time]
duration = "60 ms"
[output.receivers]
every = 2
sac = true
picture = "seismograms.png"
[[output.snapshots]]
file = "waves.h5"
every = "20 ms"
points = 41
picture = "waves.png"
film = "waves.gif"
[output.peak]
picture = "peak.png"
"""
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No measurement of the memory's speed after each of these small runs."""
    for module in ("simulation", "waves.check"):
        monkeypatch.setattr(f"seiche.case.{module}.copy_bandwidth", lambda *_: 1e10)


@pytest.fixture
def case(tmp_path: Path) -> Path:
    path = tmp_path / "case.toml"
    path.write_text(CASE)
    return path


def test_a_run_leaves_what_the_case_asks_for(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(case)]) == 0
    assert "done: step" in capsys.readouterr().out
    out = case.parent / "out"
    names = {"receivers.h5", "receivers.h5.sac", "seismograms.png", "waves.h5", "waves.png", "waves.gif", "peak.h5"}
    assert {path.name for path in out.glob("[!.]*")} == names | {"peak.png", "summary.json"}
    setup = prepare(case)
    with h5py.File(out / "receivers.h5") as file:
        assert [name.decode() for name in file["name"]] == ["TOP", "L1", "L2", "L3"]
        assert [name.decode() for name in file["field"]] == ["vx", "vy", "sxx", "syy", "sxy"]
        assert file["time"][:] == pytest.approx(2 * setup.dt * np.arange(1, setup.steps // 2 + 1))
        assert file["position"][3].tolist() == [35.0, 25.0]
        samples = file["samples"][:]
    assert samples.shape == (4, setup.steps // 2, 5)
    with h5py.File(out / "waves.h5") as file:
        assert file["velocity"].shape == (3, 31, 41, 2)
        assert file["time"][:] == pytest.approx([0.02, 0.04, 0.06], abs=setup.dt)
        assert np.abs(file["velocity"][2]).max() > 0
    with h5py.File(out / "peak.h5") as file:
        assert np.all(file["position"][:, 1] == 30.0)
        # The station lies between two nodes of the surface, whose peaks bound its own but for the interpolation.
        near = np.abs(file["position"][:, 0] - 20.0) < 1e-6
        assert file["velocity"][:][near].max() == pytest.approx(np.sqrt((samples[0, :, :2] ** 2).sum(1)).max(), rel=0.1)
        assert np.all(file["horizontal_velocity"][:] <= file["velocity"][:])
    summary = json.loads((out / "summary.json").read_text())
    assert summary["steps"] == setup.steps and summary["sites"] == 12 * 16
    assert summary["invariants"]["energy"] > 0


def test_sac_files_hold_what_the_hdf5_file_holds(case: Path) -> None:
    assert main(["run", str(case)]) == 0
    out = case.parent / "out"
    assert len(list((out / "receivers.h5.sac").iterdir())) == 4 * 2
    data = (out / "receivers.h5.sac" / "L2.vy.sac").read_bytes()
    # SAC manual: 70 floats, 40 integers, 192 bytes of text; delta is float 0, b 5, npts integer 9, nvhdr 6.
    floats, integers = np.frombuffer(data, "<f4", 70), np.frombuffer(data, "<i4", 40, 280)
    setup = prepare(case)
    assert floats[0] == pytest.approx(2 * setup.dt) and floats[5] == pytest.approx(2 * setup.dt)
    assert (integers[6], integers[15], integers[35]) == (6, 1, 1)
    assert data[440:448] == b"L2      " and data[600:608] == b"vy      "
    assert floats[40:42].tolist() == [20.0, 25.0]
    with h5py.File(out / "receivers.h5") as file:
        expected = file["samples"][2, :, 1]
    np.testing.assert_array_equal(np.frombuffer(data, "<f4", integers[9], 632), expected.astype("f4"))


def test_the_case_is_the_solver_of_the_python_interface(case: Path) -> None:
    simulation = load_waves(case)
    simulation.run(steps=40)
    mesh = Mesh.generate(Brick((4, 3), (False,) * 2), SizeField.uniform(1.0, 2), tree_size=10.0)
    soil = mesh.lower[:, 1] >= 20
    from seiche.waves import PointSource, Ricker

    other = Solver(
        mesh,
        Material(*(np.where(soil, a, b) for a, b in ((1600.0, 2000.0), (900.0, 2000.0), (500.0, 1100.0)))),
        nodes=4,
        boundaries=["absorbing", "absorbing", "absorbing", "free"],
        dt=simulation.solver.dt,
        sources=[PointSource((11.0, 9.0), Ricker(20.0, 0.075), moment=(1e6 * 20.0 * np.eye(2)).tolist())],
    )
    other.advance(40)
    state = simulation.solver.values()
    np.testing.assert_allclose(state, other.values(), rtol=1e-12, atol=1e-12 * np.abs(state).max())


def test_a_run_continues_from_a_checkpoint_bitwise(case: Path, tmp_path: Path) -> None:
    full = load_waves(case, output=tmp_path / "whole")
    full.run()
    first = load_waves(case, output=tmp_path / "parts")
    first.run(steps=37)
    first.checkpoint()
    first.close()
    second = load_waves(case, output=tmp_path / "parts", restart=tmp_path / "parts" / "checkpoint.seiche")
    assert second.solver.step == 37
    second.run()
    np.testing.assert_array_equal(second.solver.values(), full.solver.values())
    assert full.solver.peak is not None and second.solver.peak is not None
    np.testing.assert_array_equal(second.solver.peak.squares(), full.solver.peak.squares())
    with (
        h5py.File(tmp_path / "whole" / "receivers.h5") as one,
        h5py.File(tmp_path / "parts" / "receivers.h5") as rest,
    ):
        np.testing.assert_array_equal(rest["time"][:], one["time"][:])
        np.testing.assert_array_equal(rest["samples"][:], one["samples"][:])


def test_a_run_that_continues_keeps_snapshots_of_the_run_before_and_completes_seismograms(case: Path) -> None:
    out = case.parent / "out"
    assert main(["run", str(case), "--set", "output.checkpoint.every=25 ms"]) == 0
    before = {path.name: path.read_bytes() for path in out.glob("[!.]*") if path.is_file()}
    assert main(["run", str(case), "--restart", str(out / "checkpoint.seiche")]) == 0
    for name, content in before.items():
        if name.startswith("waves"):
            assert (out / name).read_bytes() == content
    later = {path.name for path in out.glob("[!.]*") if path.is_file()} - set(before)
    assert {name.split(".from-")[0] for name in later} == {"waves"} and len(later) == 3


def test_a_longer_run_keeps_the_time_step_of_the_checkpoint_and_rejects_another(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(case), "--set", "output.checkpoint.every=25 ms"]) == 0
    longer = ["run", str(case), "--restart", str(case.parent / "out" / "checkpoint.seiche")]
    longer += ["--set", "time.duration=77 ms"]
    assert main([*longer, "--set", "time.step=0.1 ms"]) == 2
    message = f"its time step is {prepare(case).dt!r} s, but time.step is 0.0001 s; omit time.step"
    assert message in capsys.readouterr().err
    assert main(longer) == 0


def test_outputs_may_stand_in_folders_of_the_output(case: Path) -> None:
    case.write_text(CASE.replace("every = 2\n", 'every = 2\nfile = "deep/er/r.h5"\n', 1))
    assert main(["run", str(case)]) == 0
    assert (case.parent / "out" / "deep" / "er" / "r.h5").exists()


def test_the_wall_clock_limit_leaves_a_checkpoint(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(case), "--set", "run.wall_clock=1 ns"]) == 0
    assert "stopped by wall-clock limit" in capsys.readouterr().out
    checkpoint = case.parent / "out" / "checkpoint.seiche"
    assert main(["run", str(case), "--restart", str(checkpoint)]) == 0
    assert main(["run", str(case), "--restart", str(checkpoint), "--set", 'material.soil.cs="510 m/s"']) == 2
    assert "a different medium or discretisation" in capsys.readouterr().err


def test_check_says_what_it_costs(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(case), "--ranks", "2"]) == 0
    text = capsys.readouterr().out
    assert "12 of 16 nodes: 192 nodes" in text
    assert "cs                  500 to 1100 m/s" in text
    # 500 m/s at 2.5 x 20 Hz with elements of 10 m and 4 nodes: one element a wavelength.
    assert re.search(r"nodes per shortest wavelength +4 \(at least 10.96\)", text)
    assert "advice: 50 Hz, the highest frequency: nodes per shortest wavelength 4 is below 10.96" in text
    assert "MB per rank on 2 ranks" in text


def test_render_draws_the_last_state_and_films(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(case)]) == 0
    out = case.parent / "out"
    assert main(["render", str(out), "--output", str(out / "again.png")]) == 0
    assert (out / "again.png").read_bytes() == (out / "waves.png").read_bytes()
    assert main(["render", str(out), "--film", "--output", str(out / "again.gif")]) == 0
    assert (out / "again.gif").read_bytes()[:6] == b"GIF89a"
    assert main(["render", str(out), "--output", str(out / "again.mp4")]) == 2
    assert "expected a picture with suffix" in capsys.readouterr().err


def test_elements_follow_the_wavelength(case: Path) -> None:
    changes = ["mesh.frequency=60 Hz", "mesh.error=0.01", "mesh.trees=[1, 1]", "mesh.size=nan"]
    text = case.read_text().replace('size = "10 m"', "")
    case.write_text(text)
    setup = prepare(case, changes[:3])
    soil = setup.mesh.lower[: setup.mesh.count, 1] >= 20
    per_wavelength = 2.74  # elements, 4 nodes, error 1e-2 (theory/waves, table 2)
    assert setup.mesh.sizes[: setup.mesh.count][soil].max() <= 500 / 60 / per_wavelength
    assert setup.mesh.sizes[: setup.mesh.count].max() <= 1100 / 60 / per_wavelength
    assert setup.mesh.sizes[: setup.mesh.count][~soil].max() > 500 / 60 / per_wavelength


def test_media_from_a_file_vary_from_node_to_node(case: Path) -> None:
    x, y = np.linspace(0, 40, 5), np.linspace(0, 30, 4)
    with h5py.File(case.parent / "model.h5", "w") as file:
        file["x"], file["y"] = x, y
        for name, low in (("density", 2000.0), ("cp", 2000.0), ("cs", 1000.0)):
            file[name] = low + 3 * x[:, None] + 2 * y
    text = CASE.replace('density = "2000 kg/m^3"\ncp = "2000 m/s"\ncs = "1100 m/s"', 'file = "model.h5"', 1)
    case.write_text(text.replace("nodes = 4", 'nodes = 4\nmaterial = "node"', 1))
    setup = prepare(case)
    solver = setup.solver()
    position = solver.positions
    rock = setup.mesh.lower[: setup.mesh.count, 1] < 20
    expected = 2000 + 3 * position[..., 0] + 2 * position[..., 1]
    np.testing.assert_allclose(setup.material.cp[rock], expected[rock], rtol=1e-9)
    assert np.all(setup.material.cp[~rock] == 900)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_plane_shows_polynomials_exactly(dim: int) -> None:
    forest = Forest.uniform(Brick((2, 1, 2)[:dim], (False,) * dim), 0)
    mesh = Mesh.of_forest(forest.refined(np.arange(len(forest)) == 1), tree_size=3.0, origin=-1.0)
    grid = PlaneGrid(mesh, 4, 23, normal=1, at=0.7)
    solver = Solver(mesh, Material.uniform(mesh.count, 1.0, 1.0), nodes=4)

    def cubic(place: np.ndarray) -> np.ndarray:
        return (place[..., 0] - 0.3) ** 3 * (1 + place[..., -1] ** 2) + place[..., 1]

    values = grid.gather(cubic(solver.positions)[:, None], solver.world)
    assert values is not None
    assert grid.shape == ((12, 23) if dim == 2 else (23, 23))
    np.testing.assert_allclose(values[0].ravel(), cubic(grid.points), rtol=1e-5, atol=1e-4)


def test_a_gaussian_force_has_the_peak_that_is_requested(case: Path) -> None:
    changes = ['source.0.time={kind="gaussian", sigma="2 ms"}', 'source.0.force=["3 N", "0 N"]']
    text = case.read_text().replace('moment = "1 MN m"', "")
    case.write_text(text)
    (source,) = prepare(case, changes).sources
    assert source.time(np.array([12e-3])) == pytest.approx(1.0)
    assert source.force == (3.0, 0.0)
    assert Gaussian(2e-3, 12e-3)(np.array([12e-3])) > 100


def test_a_frequency_that_needs_too_many_elements_is_rejected_at_once() -> None:
    """The estimate of elements agrees with the mesh where there is one."""
    path = ROOT / "examples" / "basin" / "case.toml"
    with pytest.raises(CaseError, match=r"mesh: has more than .* elements; the maximum is"):
        prepare(path, ["mesh.frequency=200 Hz"])
    sizes = SizeField([[-np.inf] * 3, [0.5, 0.2, 0.0]], [[np.inf] * 3, [0.9, 0.7, 1.0]], [0.3, 0.06])
    brick = Brick((2, 1, 1), (False,) * 3)
    assert Generator(brick, sizes).estimated_leaves() == pytest.approx(Mesh.generate(brick, sizes).total, rel=0.03)


def test_the_basin_is_what_its_comment_says() -> None:
    setup = prepare(ROOT / "examples" / "basin" / "case.toml")
    assert (setup.box[1] - setup.box[0]).tolist() == [8000.0, 8000.0, 4000.0]
    assert setup.mesh.extent[0].tolist() == pytest.approx([-4368.0, -4368.0, -8368.0])
    center = setup.mesh.lower + setup.mesh.sizes / 2
    basin = (abs(setup.material.cs - 900) < 1e-6).all(1)  # elements that its boundary does not cut
    assert basin.any() and center[basin][:, 2].min() > -600
    assert setup.mesh.sizes[basin].max() == 250 and setup.mesh.sizes.max() == pytest.approx(1728)
    assert setup.sides[5] == "free" and setup.limit < 0.01


def test_leapfrog_continues_from_a_checkpoint_and_says_when_velocities_were(case: Path) -> None:
    leap = ["time.integrator=leapfrog", "mesh.flux=central", "output.receivers.sac=true"]
    full = load_waves(case, overrides=leap, output=case.parent / "whole")
    full.run()
    half = load_waves(case, overrides=leap, output=case.parent / "half")
    half.run(steps=full.setup.steps // 2)
    half.checkpoint()
    half.close()
    rest = load_waves(case, overrides=leap, output=case.parent / "rest", restart=case.parent / "half/checkpoint.seiche")
    rest.run()
    np.testing.assert_array_equal(rest.solver.values(), full.solver.values())
    with h5py.File(case.parent / "whole" / "receivers.h5") as file:
        assert file.attrs["velocities_earlier_by"] == full.solver.dt / 2 > 0


def test_attenuation_makes_waves_smaller_and_continues_from_a_checkpoint(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = '[attenuation]\nband = ["2 Hz", "200 Hz"]\nreference = "20 Hz"\n'
    lossy = case.with_name("lossy.toml")
    lossy.write_text(case.read_text().replace('cs = "', 'qp = 20\nqs = 10\ncs = "') + table)
    full = load_waves(lossy, output=case.parent / "whole")
    assert full.setup.attenuation is not None
    full.run()
    half = load_waves(lossy, output=case.parent / "half")
    half.run(steps=full.setup.steps // 2)
    half.checkpoint()
    half.close()
    rest = load_waves(lossy, output=case.parent / "rest", restart=case.parent / "half/checkpoint.seiche")
    rest.run()
    np.testing.assert_array_equal(rest.solver.values(), full.solver.values())
    lossless = load_waves(case, output=case.parent / "lossless")
    lossless.run()
    assert np.all(np.abs(full.solver.samples()).max(0)[:, :2] < 0.9 * np.abs(lossless.solver.samples()).max(0)[:, :2])
    assert main(["check", str(lossy)]) == 0
    assert "2 to 200 Hz, 3 mechanisms" in capsys.readouterr().out


@pytest.mark.parametrize(("kind", "component", "speed"), [("p", 0, 2000.0), ("s", 1, 1000.0)])
def test_a_plane_wave_of_a_case_passes_a_receiver(kind: str, component: int, speed: float, tmp_path: Path) -> None:
    """A Ricker pulse along x, periodic across: the receiver sees it in its own time, and later as far behind."""
    frequency, velocity = speed / 20, 1e-3
    (tmp_path / "case.toml").write_text(
        f"""
solver = "waves"
mesh.lower = ["0 m", "0 m"]
mesh.upper = ["80 m", "10 m"]
mesh.trees = [8, 1]
mesh.nodes = 8
mesh.periodic = [false, true]
mesh.size = "10 m"
material = [{{ name = "rock", density = "2000 kg/m^3", cp = "2000 m/s", cs = "1000 m/s" }}]
receiver = [{{ name = "A", position = ["60 m", "5 m"] }}, {{ name = "B", position = ["70 m", "5 m"] }}]
time = {{ duration = "{40 / speed} s" }}
[plane_wave]
kind = "{kind}"
direction = [2.0, 0.0]
position = ["60 m", "5 m"]
velocity = "1 mm/s"
time = {{ kind = "ricker", frequency = "{frequency} Hz" }}
"""
    )
    simulation = load_waves(tmp_path / "case.toml")
    simulation.run()
    with h5py.File(tmp_path / "out" / "receivers.h5") as file:
        times, motion = file["time"][:], file["samples"][:, :, component]
    for seen, late in zip(motion, (0.0, 10 / speed), strict=True):
        a = (np.pi * (frequency * (times - late) - 1.5)) ** 2
        expected = velocity * (1 - 2 * a) * np.exp(-a)
        assert abs(seen).max() > 0.9 * velocity
        assert np.linalg.norm(seen - expected) < 0.02 * np.linalg.norm(expected)
