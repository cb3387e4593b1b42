# SPDX-License-Identifier: BSD-3-Clause
"""The command line and the run loop on small cases: outputs, stops, restarts, one line for every error."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flow_cases import site_arrays

import seiche
from case_files import box_tables, changed, toml_of, tube_tables, vessel_of
from hemelb_files import write_case, xml
from seiche.case import loop as loop_module
from seiche.case.flow.wall import make_wall, wall_surface
from seiche.case.loading import load, prepare
from seiche.case.stop_signals import stop_signals
from seiche.cli import main
from seiche.domain.voxelise import voxelise
from seiche.domain.world import World
from seiche.errors import CaseError, UnstableError
from seiche.flow import Monitor
from seiche.flow.monitor import PendingMonitor
from seiche.flow.state import site_state
from seiche.io.checkpoint import read_checkpoint
from seiche.io.formats.gmy import read_gmy_header, write_gmy
from seiche.report.summary import read_summary

#: Where the package that is tested lies: the source tree or an installation.
SOURCE = Path(seiche.__file__).resolve().parents[1]


def write(folder: Path, tables: dict[str, Any]) -> Path:
    path = folder / "case.toml"
    path.write_text(toml_of(tables))
    return path


def shear_box(steps: int = 40) -> dict[str, Any]:
    """Return a box with a uniform force: its velocity is that of free fall, its state changes every step."""
    return changed(
        changed(box_tables(), "body_force", {"force": ["0.001 N/m^3", "0 N/m^3", "0 N/m^3"]}), "time", {"steps": steps}
    )


def test_import_loads_nothing_heavy() -> None:
    code = (
        "import sys, seiche; heavy = {'numpy', 'scipy', 'pint', 'pydantic', 'mpi4py', 'matplotlib', 'h5py'};"
        "sys.exit(bool(heavy & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, timeout=60).returncode == 0


def test_parts_are_imported_when_they_are_named() -> None:
    assert seiche.flow.__name__ == "seiche.flow"
    assert seiche.load is seiche.case.loading.load
    with pytest.raises(AttributeError, match="has no attribute 'wind'"):
        _ = seiche.wind


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "convert" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"seiche {seiche.__version__}\n"


def test_python_m_seiche_is_the_command() -> None:
    command = [sys.executable, "-m", "seiche", "--version"]
    run = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, timeout=60)
    assert run.stdout.decode() == f"seiche {seiche.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Missing argument 'CASE'."),
        (["fly"], "No such command 'fly'."),
        (["run", "nope.toml"], "nope.toml: cannot read the case file: No such file or directory"),
        (["convert", "a.stl", "b.obj"], 'b.obj: cannot convert to ".obj"; expected .gmy, .gmy+, .vtkhdf, .stl'),
        (["convert", "a.obj", "b.stl"], 'a.obj: cannot convert from ".obj"; expected .toml, .xml, .gmy, .gmy+, .stl'),
        (["convert", "a.stl", "b.gmy"], 'a.stl: voxelising an STL file requires --spacing, such as "0.1 mm"'),
        (
            ["convert", "a.stl", "b.gmy", "--spacing", "1 s"],
            '--spacing: "1 s" is a time; expected a length such as "0.1 mm"',
        ),
    ],
)
def test_an_error_is_one_line_and_status_two(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.err == f"seiche: error: {message}\n"
    assert not captured.out


def test_check_prints_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, tube_tables())
    assert main(["check", str(path), "--ranks", "2", "--set", "lattice.tau=0.7"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"tau +0\.7\b", out)
    assert "on 2 ranks" in out
    assert "layout auto" in out and "list-aa: on a CPU the fastest layout" in out
    assert "layout moments" not in out
    assert main(["check", str(path), "--set", "lattice.collision=regularised"]) == 0
    assert "layout moments" in capsys.readouterr().out
    assert sorted(tmp_path.iterdir()) == [path]


def test_check_rejects_more_ranks_than_sites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(write(tmp_path, box_tables())), "--ranks", "65"]) == 2
    assert "there are more ranks (65) than fluid sites (64)" in capsys.readouterr().err


def test_a_run_leaves_its_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = {
        "fields": [{"file": "flow.vtkhdf", "every": 20, "fields": ["pressure", "velocity"]}],
        "surface": [{"file": "wall.vtkhdf", "every": 50}],
        "picture": "tube.png",
        "checkpoint": {"every": 100},
    }
    path = write(tmp_path, changed(tube_tables(), "output", output))
    assert main(["run", str(path)]) == 0
    captured = capsys.readouterr()
    assert "stream-collide" in captured.out
    assert "seiche: done: step 100" in captured.out
    folder = tmp_path / "out"
    assert {p.name for p in folder.glob("[!.]*")} == {
        "flow.vtkhdf",
        "wall.vtkhdf",
        "tube.png",
        "checkpoint.seiche",
        "summary.json",
    }
    summary = read_summary(folder / "summary.json")
    assert (summary["steps"], summary["stopped"]) == (100, None)
    assert summary["sites"] == len(prepare(path).vessel.sites)
    assert set(summary["flow_rates"]) == {"inlet", "outlet"}
    assert len(summary["details"]["history"]["time_s"]) == 100
    import h5py

    with h5py.File(folder / "flow.vtkhdf") as file:
        times = file["VTKHDF/Steps/Values"][:]
    assert times == pytest.approx(np.arange(1, 6) * 20 * summary["details"]["time_step_s"])


def test_free_fall_has_the_velocity_of_newton(tmp_path: Path) -> None:
    """A uniform force on fluid without walls: u = G t/rho."""
    path = write(tmp_path, shear_box(40))
    with load(path, world=World.serial()) as simulation:
        simulation.run(steps=25)
        velocity = simulation.fields("velocity")["velocity"]
        # The half force of the scheme belongs to the velocity (flow.md section 2).
        elapsed = (25 + 0.5) * simulation.setup.units.step
        assert velocity[:, 0] == pytest.approx(np.full(64, 0.001 * elapsed / 1060.0), rel=1e-9)
        assert simulation.fields("pressure")["pressure"] == pytest.approx(np.zeros(64), abs=1e-12)
        assert not (tmp_path / "out" / "summary.json").exists()
        simulation.run()
        assert simulation.solver.step == 40
    assert (tmp_path / "out" / "summary.json").exists()


def test_a_restarted_run_equals_one_that_never_stopped(tmp_path: Path) -> None:
    path = write(tmp_path, changed(tube_tables(), "time", {"steps": 60}))
    full = load(path, output=tmp_path / "whole")
    full.run()
    half = load(path, output=tmp_path / "half", overrides=["time.steps=30", "output.checkpoint.every=30"])
    half.run()
    rest = load(path, output=tmp_path / "half", restart=tmp_path / "half" / "checkpoint.seiche")
    assert rest.solver.step == 30
    rest.run()
    for name, values in site_arrays(full.solver).items():
        assert np.array_equal(values, rest.solver.state()[name])


def test_a_run_continues_from_a_checkpoint_of_version_1(tmp_path: Path) -> None:
    """The file is of step 13 of this case, written by the program as it was before version 2."""
    path = write(tmp_path, shear_box(13))
    load(path, output=tmp_path / "here", overrides=["output.checkpoint.every=13"]).run()
    earlier = Path(__file__).resolve().parents[1] / "data" / "box-version-1.seiche"
    runs = [
        load(path, restart=one, overrides=["time.steps=20"], output=tmp_path / one.stem)
        for one in (tmp_path / "here/checkpoint.seiche", earlier)
    ]
    for run in runs:
        assert run.solver.step == 13
        run.run()
    for name, values in site_arrays(runs[0].solver).items():
        np.testing.assert_allclose(runs[1].solver.state()[name], values, rtol=0, atol=1e-15)


def test_a_restarted_run_keeps_the_series_before_it(tmp_path: Path) -> None:
    output = {"fields": [{"file": "flow.vtkhdf", "every": 10}], "checkpoint": {"every": 20}}
    path = write(tmp_path, changed(shear_box(40), "output", output))
    load(path, overrides=["time.steps=20"]).run()
    first = (tmp_path / "out" / "flow.vtkhdf").read_bytes()
    load(path, restart=tmp_path / "out" / "checkpoint.seiche").run()
    assert (tmp_path / "out" / "flow.vtkhdf").read_bytes() == first
    assert (tmp_path / "out" / "flow.from-20.vtkhdf").exists()


def test_a_checkpoint_of_another_case_is_rejected(tmp_path: Path) -> None:
    path = write(tmp_path, changed(shear_box(20), "output", {"checkpoint": {"every": 20}}))
    load(path).run()
    restart = tmp_path / "out" / "checkpoint.seiche"
    for change, words in (
        ("lattice.tau=0.9", "different fluid, lattice or time step"),
        ("lattice.velocity_set=D3Q27", "different fluid, lattice or time step"),
        ("geometry.shape.size=['4 mm', '4 mm', '8 mm']", "was written with a different geometry"),
    ):
        with pytest.raises(CaseError, match=words) as caught:
            load(path, restart=restart, overrides=[change, "time.steps=40"])
        assert "\n" not in str(caught.value)
    with pytest.raises(CaseError, match="the checkpoint is at step 20, but"):
        load(path, restart=restart, overrides=["time.steps=19"])


def test_sigterm_writes_a_checkpoint_and_ends_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_module, "CHUNK_SECONDS", 0.0)
    path = write(tmp_path, changed(shear_box(10_000), "run.monitor_every", 7))
    from seiche.case.outputs import Outputs

    take_scheduled = Outputs.take_scheduled

    def interrupt(outputs: Outputs) -> None:
        if outputs._solver.step == 21:
            os.kill(os.getpid(), signal.SIGTERM)
        take_scheduled(outputs)

    monkeypatch.setattr(Outputs, "take_scheduled", interrupt)
    assert main(["run", str(path)]) == 0
    assert "seiche: stopped by signal SIGTERM at step 21 (" in (out := capsys.readouterr().out)
    assert f"continue with: seiche run {path} --restart {tmp_path / 'out' / 'checkpoint.seiche'}" in out
    checkpoint = read_checkpoint(tmp_path / "out" / "checkpoint.seiche", World.serial(), {"sites": np.arange(64)})
    assert checkpoint.step == 21
    assert read_summary(tmp_path / "out" / "summary.json")["stopped"] == "signal SIGTERM"


def test_the_wall_clock_limit_writes_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, changed(shear_box(10_000_000), "run.wall_clock", "1 ms"))
    assert main(["run", str(path)]) == 0
    assert "stopped by wall-clock limit of 0.001 s" in capsys.readouterr().out
    assert (tmp_path / "out" / "checkpoint.seiche").exists()


def test_signal_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_signals() as request:
        os.kill(os.getpid(), signal.SIGINT)
        assert request.number == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_field_that_is_not_finite_stops_the_run_and_leaves_the_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, changed(shear_box(40), "output", {"checkpoint": {"every": 10}}))
    simulation = load(path)
    simulation.run(steps=12)
    checkpoint = tmp_path / "out" / "checkpoint.seiche"
    retained = checkpoint.read_bytes()
    state = site_arrays(simulation.solver)
    state["populations"][5, 3] = np.nan
    simulation.solver.set_state(site_state(simulation.solver, state, 12))
    with pytest.raises(UnstableError) as caught:
        simulation.run()
    text = str(caught.value)
    assert "site [" in text and "rank 0" in text and "step 20" in text
    assert f"last good checkpoint: {checkpoint} of step 10" in text
    assert checkpoint.read_bytes() == retained
    assert not (tmp_path / "out" / "summary.json").exists()


def test_a_run_faster_than_sound_stops_before_it_replaces_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = tube_tables() | {"time": {"steps": 40}, "output": {"checkpoint": {"every": 10}}}
    simulation = load(write(tmp_path, tables))
    monitor = PendingMonitor.monitor

    def fast(watch: PendingMonitor) -> Monitor:
        seen = monitor(watch)
        return seen if watch.step <= 10 else replace(seen, mach=1.5)

    monkeypatch.setattr(PendingMonitor, "monitor", fast)
    with pytest.raises(
        UnstableError,
        match=r"Mach number 1\.5 at step 20; the maximum velocity is at site \[.*\], rank 0, step 2\d; "
        r"0.0433 was expected: check .*; last good .* of step 10",
    ):
        simulation.run()


def test_convert_keeps_the_blocks_of_a_gmy_file(tmp_path: Path) -> None:
    sites = vessel_of(tube_tables()).sites
    write_gmy(tmp_path / "six.gmy", sites, 6, level=6)
    assert main(["convert", str(tmp_path / "six.gmy"), str(tmp_path / "copy.gmy")]) == 0
    assert (tmp_path / "copy.gmy").read_bytes() == (tmp_path / "six.gmy").read_bytes()


def test_convert_of_a_case_keeps_the_blocks_of_its_gmy_file(tmp_path: Path) -> None:
    path = write_case(tmp_path, xml())
    sites = vessel_of(tube_tables()).sites
    write_gmy(tmp_path / "tube.gmy", replace(sites, wall_normal=-sites.wall_normal), 6, level=6)
    assert main(["convert", str(path), str(tmp_path / "copy.gmy")]) == 0
    assert (tmp_path / "copy.gmy").read_bytes() == (tmp_path / "tube.gmy").read_bytes()


def test_the_wall_of_a_tube_reaches_the_planes_of_its_iolets_and_holds_the_same_sites() -> None:
    sites = vessel_of(tube_tables()).sites
    surface = wall_surface(sites)
    for plane in sites.iolets:
        heights = (surface.vertices - plane.center) @ np.asarray(plane.normal)
        assert heights.min() == pytest.approx(0.0, abs=1e-9 * sites.spacing)
    second, report = voxelise(surface, sites.spacing, sites.iolets, origin=None)
    assert len(report.holes) == 0
    assert len(second) == pytest.approx(len(sites), rel=0.03)


def test_convert_keeps_the_weights_and_the_normals_of_a_weighted_gmy_file(tmp_path: Path) -> None:
    sites = vessel_of(tube_tables()).sites
    inwards = replace(sites, wall_normal=-sites.wall_normal)
    write_gmy(tmp_path / "six.gmy+", inwards, 6, level=6, weights=np.full(12, 9))
    assert main(["convert", str(tmp_path / "six.gmy+"), str(tmp_path / "copy.gmy+")]) == 0
    assert (tmp_path / "copy.gmy+").read_bytes() == (tmp_path / "six.gmy+").read_bytes()
    assert main(["convert", str(tmp_path / "six.gmy+"), str(tmp_path / "plain.gmy")]) == 0
    assert main(["convert", str(tmp_path / "plain.gmy"), str(tmp_path / "counted.gmy+")]) == 0
    counted = read_gmy_header(tmp_path / "counted.gmy+")
    assert counted.weights is not None
    assert counted.weights.min() < counted.weights.max()
    path = write(tmp_path, tube_tables())
    assert main(["convert", str(path), str(tmp_path / "case.gmy+")]) == 0
    assert read_gmy_header(tmp_path / "case.gmy+").plus


def test_convert_never_replaces_a_file_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, tube_tables())
    for ending in ("gmy", "stl", "vtkhdf"):
        target = tmp_path / f"tube.{ending}"
        assert main(["convert", str(path), str(target)]) == 0
        first = target.read_bytes()
        capsys.readouterr()
        assert main(["convert", str(path), str(target)]) == 2
        assert capsys.readouterr().err == f"seiche: error: {target}: exists already; add --force to replace it\n"
        assert target.read_bytes() == first
        assert main(["convert", str(path), str(target), "--force"]) == 0
    capsys.readouterr()
    assert main(["convert", str(tmp_path / "tube.gmy"), str(tmp_path / "again.stl"), "--spacing", "0.25 mm"]) == 0
    assert "triangles" in capsys.readouterr().out


def test_the_wall_of_a_tube_is_where_the_tube_is() -> None:
    sites = vessel_of(changed(tube_tables(), "geometry.spacing", "0.125 mm")).sites
    surface = wall_surface(sites)
    radius = np.hypot(surface.vertices[:, 1], surface.vertices[:, 2])
    assert radius.mean() == pytest.approx(1e-3, rel=0.03)
    loops = surface.boundary_loops()
    assert len(loops) == 2, "open at both ends"
    assert surface.volume > 0


def test_values_on_the_wall_are_averages_of_the_wall_sites() -> None:
    sites = vessel_of(tube_tables()).sites
    wall = make_wall(sites, wall_surface(sites), np.arange(len(sites)))
    assert wall.sample(World.serial(), np.full(len(sites), 3.0)) == pytest.approx(np.full(len(wall.faces), 3.0))
    axial = wall.sample(World.serial(), sites.coords[:, 0].astype(float))
    centers = wall.vertices[wall.faces].mean(axis=1)[:, 0]
    inner = (centers > 1e-3) & (centers < 3e-3)
    assert np.abs(axial - (centers - sites.origin[0]) / sites.spacing)[inner].max() < 0.7


def test_the_transport_of_a_run_can_be_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, shear_box(4))
    assert main(["run", str(path), "--transport", "local"]) == 0
    assert main(["run", str(path), "--transport", "pigeon"]) == 2
    assert "run.transport" in capsys.readouterr().err
