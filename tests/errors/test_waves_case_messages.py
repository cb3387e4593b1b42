# SPDX-License-Identifier: BSD-3-Clause
"""Wrong case files of waves, and the one line that each gets."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from case_files import table_of
from seiche.case.flow.convert import convert
from seiche.case.loading import prepare
from seiche.case.waves.estimates import wave_estimates
from seiche.case.waves.media import read_grid
from seiche.cli import main
from seiche.errors import CaseError, FormatError
from seiche.report.motion import read_motion
from seiche.waves import Ricker
from waves_cases import ROCK

CASE = (
    ROCK
    + """[[source]]
position = ["11 m", "9 m"]
force = ["1 N", "0 N"]
time = { kind = "ricker", frequency = "20 Hz" }
[[receiver]]
name = "TOP"
position = ["20 m", "30 m"]
[time]
steps = 2
"""
)
#: The rest of a plane wave.
WAVE = 'position = ["20 m", "9 m"]\nvelocity = "1 mm/s"\ntime = { kind = "ricker", frequency = "20 Hz" }\n'
#: Text of the case, its replacement, and a part of the message ("-": the case is valid).
WRONG = table_of(r"""
cs = "1000 m/s" | cs = "-1 m/s" | material: cs = -1 in element 0: must be finite and >= 0
cs = "1000 m/s" | cs = "1900 m/s" | cp = 2000 with cs = 1900 in element 0: cp must exceed sqrt(4/3) cs
density = "2000 kg/m^3" | density = "-2 kg/m^3" | material["rock"].density: "-2 kg/m^3" is out of range;
density = "2000 kg/m^3" | desity = "2 kg/m^3" | unknown key; did you mean "density"?
position = ["11 m", "9 m"] | position = ["41 m", "9 m"] | source[0]: (41, 9) m is outside the mesh
position = ["20 m", "30 m"] | position = ["20 m", "31 m"] | receiver["TOP"]: (20, 31) m is outside the mesh
"11 m", "9 m"] | "11 m", "9 m", "1 m"] | source[0].position: has 3 numbers, the mesh has 2 axes
"11 m", "9 m"] | "11 m"] | has 1 numbers, the mesh has 2 axes
steps = 2 | steps = 2\nstep = "1 s" | time.step: 1 s is above the largest stable step of 0.00
steps = 2 | steps = 2\nduration = "1 s" | give exactly one of duration, steps; duration and steps are given
steps = 2 | steps = 2\nintegrator = "leapfrog" | time.integrator: leapfrog needs mesh.flux = "central", not
cs = "1000 m/s" | cs = "1000 m/s"\nqs = 30 | attenuation: is missing; material["rock"] has qp or qs
[time] | [attenuation]\nband = ["1 Hz", "9 Hz"]\n[time] | attenuation: no material has qp or qs
cs = "1000 m/s" | cs = "1000 m/s"\nqs = 2 | material["rock"].qs: 2 is out of range; expected >= 3
trees = [4, 3] | trees = [4] | trees needs 2 entries, one for each axis; it has 1
trees = [4, 3] | trees = [4, 0] | trees = [4, 0]: expected at least one along every axis
nodes = 3 | nodes = 12 | mesh.nodes: 12 is out of range; expected <= 10
nodes = 3 | nodes = 2 | -
size = "10 m" | size = "1 nm" | mesh: has more than 1.2e+21 elements; the maximum is 3.6e+08
size = "10 m" |  | give exactly one of size, frequency; none is given
upper = ["40 m", "30 m"] | upper = ["40 m", "0 m"] | upper must exceed lower along every axis
upper = ["40 m", "30 m"] | upper = ["40 m", "1 m", "1 m"] | lower has 2 axes and upper 3
force = ["1 N", "0 N"] | volume = "1 m^3" | source: volume requires the acoustic medium
force = ["1 N", "0 N"] | moment = "1 J"\ntensor = [[1.0, 0.0]] | source[0].tensor: needs 2 rows of 2 numbers
force = ["1 N", "0 N"] |  | give exactly one of force, moment, volume; none is given
force = ["1 N", "0 N"] | force = ["1 N", "0 N"]\ntensor = [[1.0]] | tensor is only allowed with moment
kind = "ricker" | kind = "rickr" | "rickr" is not known; expected "ricker", "gaussian", "brune", "file"
kind = "ricker", frequency = "20 Hz" | kind = "file", file = "no.txt" | no.txt: No such file
name = "TOP" | name = "TOO LONG NAME" | receiver["TOO LONG NAME"].name
name = "TOP" | name = "TOP"\ncount = 3 | a line of receivers needs start, end and count
[time] | [boundary]\nlower = ["free"]\n[time] | boundary.lower: has 1 kinds, the mesh has 2 axes
[time] | [boundary]\nlower = ["open", "free"]\n[time] | "open" is not known; expected "free", "rigid"
[time] | [boundary]\nsponge = "31 m"\n[time] | sponge of thickness 31: must be below the width of the box, 30
[time] | [output.peak]\nside = "z+"\n[time] | output.peak.side: the mesh has no side z+
[time] | [output.peak]\nfile = "receivers.h5"\n[time] | two outputs have the same file name "receivers.h5"
name = "rock" | name = "rock"\nwhere = { kind = "layer", bottom = "1 m", top = "0 m" } | bottom = 1 m must be
name = "rock" | name = "rock"\nwhere = { kind = "layer", bottom = "0 m", top = "1 m" } | must fill the box
name = "rock" | name = "rock"\nwhere = { kind = "box", lower = ["2 m", "1 m"], upper = ["1 m", "2 m"] } | upper must
    exceed lower along every axis
trees = [4, 3] | trees = [40000, 30000] | mesh: has more than 1.2e+09 elements
[time] | [plane_wave]\nkind = "p"\ndirection = [1.0]\n{WAVE}[time] | plane_wave.direction: has 1 numbers
[time] | [plane_wave]\nkind = "p"\ndirection = [0.0, 0.0]\n{WAVE}[time] | direction [0.0, 0.0] has zero length
[time] | [plane_wave]\nkind = "q"\ndirection = [1.0, 0.0]\n{WAVE}[time] | "q" is not known; expected "p"
[time] | [plane_wave]\nkind = "s"\npolarization = [1.0, 0.0]\ndirection = [1.0, 0.0]\n{WAVE}[time] | polarization
    [1.0, 0.0] is not perpendicular to the direction
[time] | [[output.snapshots]]\nfile = "a.h5"\nevery = 1\nat = "1 m"\n[time] | output.snapshots["a.h5"]: normal and at
    need three axes; the mesh has two
[time] | [[output.snapshots]]\nfile = "receivers.h5.sac"\nevery = 1\n[output.receivers]\nsac = true\n[time] | two
    outputs have the same file name "receivers.h5.sac"
[time] | [plane_wave]\nkind = "s"\npolarization = [0.0, 0.0]\ndirection = [1.0, 0.0]\n{WAVE}[time] | polarization
    [0.0, 0.0] has zero length
name = "rock" | name = "rock"\nfile = "a.h5" | give exactly one of density, file, segy; density and file are given
""")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No measurement of the memory's speed after each of these small runs."""
    for module in ("simulation", "waves.check"):
        monkeypatch.setattr(f"seiche.case.{module}.copy_bandwidth", lambda *_: 1e10)


@pytest.mark.parametrize(("old", "new", "message"), WRONG, ids=[f"{number}" for number in range(len(WRONG))])
def test_an_error_gives_one_line(
    old: str, new: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "case.toml"
    assert old in CASE
    path.write_text(CASE.replace(old, new.replace("{WAVE}", WAVE), 1))
    status = main(["run", str(path)])
    text = capsys.readouterr().err
    if message == "-":
        assert status == 0
        return
    assert status == 2
    lines = [line for line in text.splitlines() if line.startswith("seiche: error: ")]
    assert len(lines) == 1 and message in lines[0] and "(and 1 more)" not in lines[0]


BROKEN = {
    "is missing; expected data sets x, y, density, cp, cs": {"x": [0.0, 1.0], "y": [0.0, 1.0]},
    "must be a list of at least two ascending numbers": {"x": [1.0, 0.0]},
    "has the shape (3, 2), but the axes have (2, 2)": {"cp": np.ones((3, 2))},
    "is not finite at [1, 0]": {"cs": np.array([[1.0, 1.0], [np.nan, 1.0]])},
    "density: 0 at (0, 1) m must be > 0": {"density": np.array([[1.0, 0.0], [1.0, 1.0]])},
    "cp: -1 at (1, 1) m must be > 0": {"cp": np.array([[1.0, 1.0], [1.0, -1.0]])},
    "cs: -1 at (1, 0) m must be >= 0": {"cs": np.array([[0.5, 0.5], [-1.0, 0.5]])},
    "cp: 1 at (0, 0) m must exceed sqrt(4/3) cs at the same point": {"cs": np.full((2, 2), 0.9)},
}


@pytest.mark.parametrize("message", list(BROKEN))
def test_a_broken_file_of_media_is_named(message: str, tmp_path: Path) -> None:
    values = {"x": [0.0, 1.0], "y": [0.0, 1.0], **{name: np.ones((2, 2)) for name in ("density", "cp", "cs")}}
    changed = BROKEN[message]
    with h5py.File(tmp_path / "model.h5", "w") as file:
        for name, value in (changed if len(changed) == 2 else {**values, **changed}).items():
            file[name] = value
    media = 'density = "2000 kg/m^3"\ncp = "2000 m/s"\ncs = "1000 m/s"'
    (tmp_path / "case.toml").write_text(CASE.replace(media, 'file = "model.h5"'))
    with pytest.raises(FormatError, match=r"model\.h5") as error:
        prepare(tmp_path / "case.toml")
    assert message in str(error.value)


def test_media_next_to_the_mesh_and_short_files_are_noted(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "model.h5", "w") as file:
        file["x"], file["y"] = [0.0, 40.0], [0.0, 20.0]
        for name, value in (("density", 2000.0), ("cp", 2000.0), ("cs", 1000.0)):
            file[name] = np.full((2, 2), value)
    media = 'density = "2000 kg/m^3"\ncp = "2000 m/s"\ncs = "1000 m/s"'
    high = '[[material]]\nname = "high"\ndensity = "1 kg/m^3"\ncp = "300 m/s"\n'
    high += 'where = { kind = "layer", bottom = "31 m", top = "32 m" }\n[[source]]'
    text = CASE.replace(media, 'file = "model.h5"').replace("[[source]]", high, 1)
    (tmp_path / "case.toml").write_text(text)
    notes = prepare(tmp_path / "case.toml").notes
    assert 'material["high"] is outside the mesh' in notes
    assert (
        'material["rock"]: its file covers y = 0 m to 20 m, the mesh needs 0 m to 30 m; values at the edge of'
        " the file are extended" in notes
    )


@pytest.mark.parametrize(("upper", "jumps"), [(2500.0, True), (2100.0, False)])
def test_jumps_between_points_of_a_file_are_noted(upper: float, *, jumps: bool, tmp_path: Path) -> None:
    """Impedances of 4 and 5 MRayl, 20 %, in 2 of 2 * 4 + 5 = 13 pairs, 12.5 m apart; or 4 and 4.2 MRayl."""
    with h5py.File(tmp_path / "model.h5", "w") as file:
        file["x"], file["y"] = [0.0, 40.0], [0.0, 5.0, 10.0, 22.5, 30.0]
        file["density"], file["cs"] = np.full((2, 5), 2000.0), np.full((2, 5), 1000.0)
        file["cp"] = np.tile([2000.0, 2000.0, 2000.0, upper, upper], (2, 1))
    media = 'density = "2000 kg/m^3"\ncp = "2000 m/s"\ncs = "1000 m/s"'
    (tmp_path / "case.toml").write_text(CASE.replace(media, 'file = "model.h5"'))
    notes = [note for note in prepare(tmp_path / "case.toml").notes if "jumps" in note]
    assert len(notes) == jumps
    if jumps:
        assert 'material["rock"]: the impedance in its file jumps by up to 20 %' in notes[0]
        assert "(by more than 10 % in 15 % of the pairs)" in notes[0] and "over 12.5 m" in notes[0]


def test_a_layer_thinner_than_the_elements_is_noted(tmp_path: Path) -> None:
    thin = '[[material]]\nname = "thin"\ndensity = "1 t/m^3"\ncp = "3 km/s"\n'
    thin += 'where = { kind = "layer", bottom = "11 m", top = "12 m" }\n[[source]]'
    by_element = CASE.replace("[[source]]", thin).replace("[mesh]", '[mesh]\nmaterial = "element"', 1)
    (tmp_path / "case.toml").write_text(by_element)
    lost = [note for note in prepare(tmp_path / "case.toml").notes if "thin" in note]
    assert lost == ['material["thin"]: contains no element centre and is ignored; use smaller elements (mesh.size)']
    for change in ("mesh.size=2 m", "mesh.material=average"):
        assert not [note for note in prepare(tmp_path / "case.toml", [change]).notes if "thin" in note]


def test_what_lies_in_the_absorbing_layer_is_noted(tmp_path: Path) -> None:
    line = '[boundary]\nupper = ["free", "absorbing"]\nsponge = "10 m"\n[[receiver]]\nname = "L"\n'
    line += 'start = ["35 m", "15 m"]\nend = ["35 m", "25 m"]\ncount = 3\n[time]'
    (tmp_path / "case.toml").write_text(CASE.replace("[time]", line))
    notes = prepare(tmp_path / "case.toml").notes
    assert "source[0] is in the layer of boundary.sponge, which damps all waves" in notes
    assert 'receiver["TOP"] and 1 more are in the layer of boundary.sponge, which damps all waves' in notes


def test_samples_farther_apart_than_the_run_is_long_are_noted(tmp_path: Path) -> None:
    """And take no memory: amplitudes of sources persist from one sample to the next."""
    (tmp_path / "case.toml").write_text(CASE)
    setup = prepare(tmp_path / "case.toml", ["output.receivers.every=1000000000000"])
    assert "output.receivers.every is longer than the run of 2 steps: no sample is taken" in setup.notes
    solver = setup.solver()
    solver.advance(2)
    assert solver.samples().shape == (0, 1, 5)


def test_too_few_nodes_per_wavelength_of_a_pulse_from_a_file_are_noted(tmp_path: Path) -> None:
    time = np.arange(0, 0.4, 1e-3)
    np.savetxt(tmp_path / "pulse.txt", np.stack([time, Ricker(20.0, 0.1)(time)], 1))
    text = CASE.replace('kind = "ricker", frequency = "20 Hz"', 'kind = "file", file = "pulse.txt"')
    (tmp_path / "case.toml").write_text(text)
    setup = prepare(tmp_path / "case.toml")
    resolution = setup.resolution
    assert resolution is not None and resolution[2] == pytest.approx(2.77 * 20, rel=0.01)  # 1 % of its spectrum
    assert resolution[0] == pytest.approx(3 * 1000 / resolution[2] / 10)
    (resolution,) = (item for item in wave_estimates(setup) if item.name == "nodes per shortest wavelength")
    assert resolution.violated


def test_media_by_the_conventions_of_netcdf(tmp_path: Path) -> None:
    """Dimensions with names in another order, packed numbers, missing ones."""
    values = 2000.0 + 100 * np.arange(12).reshape(3, 4)  # y, x
    with h5py.File(tmp_path / "model.nc", "w") as file:
        for name, along in (("x", np.linspace(0, 40, 4)), ("y", np.linspace(0, 30, 3))):
            file[name] = along
            file[name].make_scale(name)
        for name, packed in (("density", values), ("cp", ((values - 500) / 2).astype("i2")), ("cs", values / 2)):
            file[name] = packed
            for axis, scale in enumerate("yx"):
                file[name].dims[axis].attach_scale(file[scale])
        file["cp"].attrs["scale_factor"], file["cp"].attrs["add_offset"] = 2.0, 500.0
    grid = read_grid(tmp_path / "model.nc", 2)
    np.testing.assert_allclose(grid.values, [values.T, values.T, values.T / 2])
    with h5py.File(tmp_path / "model.nc", "a") as file:
        file["cp"].attrs["_FillValue"] = file["cp"][2, 1]
    with pytest.raises(FormatError, match=r"cp: is not finite at \[1, 2\]"):
        read_grid(tmp_path / "model.nc", 2)


def test_a_file_of_media_that_is_none(tmp_path: Path) -> None:
    media = 'density = "2000 kg/m^3"\ncp = "2000 m/s"\ncs = "1000 m/s"'
    (tmp_path / "case.toml").write_text(CASE.replace(media, 'file = "model.h5"'))
    with pytest.raises(CaseError, match=r"cannot read .*model\.h5: no such file"):
        prepare(tmp_path / "case.toml")
    (tmp_path / "model.h5").write_bytes(b"\x00" * 100)
    with pytest.raises(FormatError, match=r"model\.h5: whole file: not a readable HDF5 file"):
        prepare(tmp_path / "case.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1\n1 x\n", "line 2: expected two numbers"),
        ("0 1\n0 2\n", "line 2: expected finite numbers and ascending times"),
        ("# nothing\n", "expected at least two lines"),
    ],
)
def test_a_broken_pulse_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "pulse.txt").write_text(text)
    (tmp_path / "case.toml").write_text(
        CASE.replace('kind = "ricker", frequency = "20 Hz"', 'kind = "file", file = "pulse.txt"')
    )
    with pytest.raises(FormatError) as error:
        prepare(tmp_path / "case.toml")
    assert message in str(error.value) and "pulse.txt" in str(error.value)


def test_commands_that_are_not_for_waves_say_so(tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(CASE)
    with pytest.raises(CaseError, match="has no vessel to convert"):
        convert(path, tmp_path / "x.gmy")
    (tmp_path / "x.h5").write_bytes(b"no")
    with pytest.raises(FormatError, match="no snapshots of waves"):
        read_motion(tmp_path / "x.h5")


@pytest.mark.parametrize("upper", [[], [1.0], [1.0, -1.0], [1.0, 1.0, 1.0], [[1.0, 1.0]]])
def test_snapshots_without_a_rectangle_are_rejected(tmp_path: Path, upper: list[float]) -> None:
    path = tmp_path / "snapshots.h5"
    with h5py.File(path, "w") as file:
        file.attrs.update({"medium": "acoustic", "axes": ["x", "y"], "title": "t", "lower": [0.0, 0.0], "upper": upper})
        file["time"], file["pressure"] = np.arange(2.0), np.zeros((2, 3, 3), np.float32)
        file["velocity"] = np.zeros((2, 3, 3, 2), np.float32)
    with pytest.raises(FormatError, match="not the corners of a rectangle"):
        read_motion(path)


def test_an_output_that_is_invalid_is_rejected_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "case.toml").write_text(CASE)
    (tmp_path / "out" / "summary.json").mkdir(parents=True)
    assert main(["run", str(tmp_path / "case.toml")]) == 2
    assert "summary.json is a folder; choose another output name" in capsys.readouterr().err
    (tmp_path / "out" / "file").write_text("")
    assert main(["run", str(tmp_path / "case.toml"), "--set", "output.summary=file/s.json"]) == 2
    assert f"output.summary: {tmp_path / 'out' / 'file'} is not a folder" in capsys.readouterr().err


def test_the_pulse_of_a_plane_wave_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wave = WAVE.replace('kind = "ricker", frequency = "20 Hz"', 'kind = "file", file = "out/pulse.txt"')
    text = CASE.replace("[time]", f'[plane_wave]\nkind = "p"\ndirection = [1.0, 0.0]\n{wave}[time]')
    (tmp_path / "case.toml").write_text(text)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "pulse.txt").write_text("0 0\n1 1\n")
    assert main(["run", str(tmp_path / "case.toml"), "--set", "output.summary=pulse.txt"]) == 2
    assert "pulse.txt, which the case reads" in capsys.readouterr().err
    assert (tmp_path / "out" / "pulse.txt").read_text() == "0 0\n1 1\n"


def test_what_a_case_reads_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "case.toml"
    path.write_text(CASE)
    changes = ["--output", str(tmp_path), "--set", "output.summary=case.toml"]
    assert main(["run", str(path), *changes]) == 2
    assert "case.toml, which the case reads; choose another name or folder" in capsys.readouterr().err
    assert path.read_text() == CASE


def test_a_checkpoint_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "case.toml"
    path.write_text(CASE)
    assert main(["run", str(path), "--restart", str(tmp_path / "no.seiche")]) == 2
    assert "cannot read the checkpoint" in capsys.readouterr().err
    assert main(["run", str(path), "--set", "run.wall_clock=1 ns"]) == 0
    checkpoint = str(tmp_path / "out" / "checkpoint.seiche")
    assert main(["run", str(path), "--restart", checkpoint, "--set", "mesh.trees=[2, 3]"]) == 2
    assert "the checkpoint was written with a different mesh than" in capsys.readouterr().err
    for change in ('receiver.0.position=["9 m", "9 m"]', "output.receivers.every=3"):
        assert main(["run", str(path), "--restart", checkpoint, "--set", change]) == 2
        assert "written with a different set of receivers or interval than" in capsys.readouterr().err
    for change in ('boundary.lower=["rigid", "rigid"]', "boundary.sponge=10 m"):
        assert main(["run", str(path), "--restart", checkpoint, "--set", change]) == 2
        assert "the checkpoint was written with a different boundary than" in capsys.readouterr().err
    assert main(["run", str(path), "--set", "time.steps=2", "--set", "output.checkpoint.every=2", "--replace"]) == 0
    assert main(["run", str(path), "--restart", checkpoint, "--set", "time.steps=1"]) == 2
    assert "the checkpoint is at step 2, but" in capsys.readouterr().err
