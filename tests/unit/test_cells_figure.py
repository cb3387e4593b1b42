# SPDX-License-Identifier: BSD-3-Clause
"""Pictures and films of cells: content, number of frames, and states that cannot be drawn."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seiche.case.output_targets import check_replaceable_file
from seiche.case.render import render
from seiche.cells import icosphere
from seiche.cli import main
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError
from seiche.io.background import write_now
from seiche.io.cell_files import (
    SurfaceFiles,
    is_file_of_series,
    list_path,
    read_list,
    read_surfaces,
    state_path,
    wall_path,
)
from seiche.io.surface_file import CellSurfaces, surfaces_job, write_surfaces
from seiche.report.cells_figure import camera_for, cells_figure, color_limit, film

BALL = icosphere(162)


def state(time: float, shift: float = 0.0, speed: float = 2e-3) -> CellSurfaces:
    """Return a ball of 4 um that moves along x."""
    vertices = 2e-6 * BALL.vertices + np.array([shift, 0.0, 0.0])
    velocity = np.tile([speed, 0.0, 0.0], (len(vertices), 1))
    return CellSurfaces(
        time, vertices, BALL.faces, {"velocity": velocity}, {"cell": np.zeros(len(BALL.faces), np.int64)}
    )


def wall() -> CellSurfaces:
    return CellSurfaces(0.0, BALL.vertices * [20e-6, 6e-6, 5e-6], BALL.faces)


def test_states_come_back_from_their_files(tmp_path: Path) -> None:
    files = SurfaceFiles(tmp_path / "cells.vtkhdf", [])
    for step in (5, 10):
        job = surfaces_job(state_path(files.path, step), state(1e-6 * step))
        write_now(files.state(step, 1e-6 * step, job), World.serial())
    assert files.steps == 2
    listed = read_list(tmp_path / "cells.vtkhdf")
    assert listed == [(tmp_path / f"cells.{step:09d}.vtkhdf", 1e-6 * step) for step in (5, 10)]
    second = read_surfaces(listed[1][0])
    assert second.time == pytest.approx(1e-5)
    assert np.abs(second.vertices - state(0.0).vertices).max() < 1e-12
    assert np.array_equal(second.faces, BALL.faces)
    assert second.on_vertices["velocity"].shape == (162, 3)


def test_the_long_side_lies_and_everything_is_seen() -> None:
    camera = camera_for(wall().vertices)
    assert camera.high[0] - camera.low[0] > 2 * (camera.high[1] - camera.low[1])
    assert camera.high[0] - camera.low[0] > 38
    assert color_limit([state(0.0), state(0.0, speed=3e-3)]) == pytest.approx(3e-3)
    assert color_limit([]) == 1.0


def test_cells_show_their_speed_before_a_pale_wall(tmp_path: Path) -> None:
    for name, speed in (("slow", 1e-6), ("fast", 2e-3)):
        two = state(0.0)
        velocity = np.concatenate([two.on_vertices["velocity"], 0 * two.on_vertices["velocity"] + [speed, 0, 0]])
        aside = np.array([10e-6, 0.0, 0.0])
        vertices = np.concatenate([two.vertices - aside, two.vertices + aside])
        faces = np.concatenate([BALL.faces, BALL.faces + 162])
        cells_figure(tmp_path / f"{name}.png", CellSurfaces(1e-3, vertices, faces, {"velocity": velocity}), wall())
    pictures = [np.asarray(Image.open(tmp_path / f"{name}.png").convert("RGB"), float) for name in ("slow", "fast")]
    rows, columns = pictures[0].shape[:2]
    right = [picture[rows // 2 - 20 : rows // 2 + 20, columns // 2 : int(0.75 * columns)] for picture in pictures]
    # Viridis: a slow cell is violet, a fast one yellow.
    greenest = [float((part[..., 1] - part[..., 2]).max()) for part in right]
    assert greenest[0] < 20 < 120 < greenest[1]


def test_a_film_has_a_frame_for_every_state(tmp_path: Path) -> None:
    frames: list[int] = []
    film(tmp_path / "film.gif", [lambda k=k: state(1e-6 * k, 1e-6 * k) for k in range(4)], wall(), frames.append)
    with Image.open(tmp_path / "film.gif") as picture:
        assert picture.n_frames == 4
        assert picture.size[0] == 900
    assert frames == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="a film requires at least one state"):
        film(tmp_path / "none.gif", [], None)


def example_run(folder: Path) -> Path:
    files = SurfaceFiles(folder / "cells.vtkhdf", [])
    for step in range(3):
        job = surfaces_job(state_path(files.path, step), state(0.0, 1e-6 * step))
        write_now(files.state(step, 1e-6 * step, job), World.serial())
    write_surfaces(wall_path(folder / "cells.vtkhdf"), wall())
    return folder


def test_render_draws_what_a_run_has_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = example_run(tmp_path)
    assert main(["render", str(run)]) == 0
    assert main(["render", str(run), "--film", "--every", "2", "--output", str(tmp_path / "two.gif")]) == 0
    assert capsys.readouterr().out.split() == [str(run / "cells.png"), str(tmp_path / "two.gif")]
    with Image.open(tmp_path / "two.gif") as picture:
        assert picture.n_frames == 2


@pytest.mark.parametrize(
    ("name", "kind"), [("cells.gif", "GIF film"), ("cells.mp4", "MP4 film"), ("cells.png", "PNG picture")]
)
def test_a_film_or_picture_replaces_no_file_of_another_kind(name: str, kind: str, tmp_path: Path) -> None:
    run = example_run(tmp_path)
    remote, moving, output = run / name, name != "cells.png", run / name if name == "cells.mp4" else None
    remote.write_text("mine")
    with pytest.raises(CaseError) as caught:
        render(run, moving=moving, output=output)
    assert str(caught.value) == f"--output: {remote} exists but is not a valid {kind}; choose another output name"
    assert remote.read_text() == "mine"
    if output is None:
        remote.unlink()
        for _ in range(2):  # what was drawn may be drawn anew
            assert render(run, moving=moving) == remote
    remote.write_bytes(b"\x00\x00\x00\x20ftypisom")
    check_replaceable_file("--output", remote, "MP4 film")


def test_what_cannot_be_drawn_gives_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="nowhere: is not a folder; expected the output folder of a run"):
        render(tmp_path / "nowhere", moving=False)
    with pytest.raises(CaseError, match="contains no cells, waves or fields; write them with"):
        render(tmp_path, moving=False)
    for kind, words in (
        ("flow", r"fields; write them with \[\[output.fields\]\], file = flow.vtkhdf$"),
        (
            "blood",
            r"cells or fields; write them with \[\[output.cells\]\], file = cells.vtkhdf, or \[\[output.fields\]\]",
        ),
        ("ultrasound", r"snapshots of the pressure; write them with \[\[output.snapshots\]\], file = waves.h5$"),
        ("waves", r"snapshots of waves; write them with \[\[output.snapshots\]\], file = waves.h5$"),
    ):
        (tmp_path / "summary.json").write_text(json.dumps({"solver": kind}))
        with pytest.raises(CaseError, match=f"contains no {words}"):
            render(tmp_path, moving=False)
    (tmp_path / "summary.json").unlink()
    run = example_run(tmp_path)
    with pytest.raises(CaseError, match=r"contains no series other\.vtkhdf"):
        render(run, moving=False, series="other.vtkhdf")
    with pytest.raises(CaseError, match=r"--output a\.png: expected a film with suffix \.gif or \.mp4"):
        render(run, moving=True, output=Path("a.png"))
    with pytest.raises(CaseError, match=r"--output a\.gif: expected a picture with suffix \.png or"):
        render(run, moving=False, output=Path("a.gif"))
    list_path(run / "cells.vtkhdf").write_text("{")
    with pytest.raises(FormatError, match="not a list of states"):
        render(run, moving=False)
    entry = {"file-series-version": "1.0", "files": [{"name": "../cells.vtkhdf", "time": 0.0}]}
    list_path(run / "cells.vtkhdf").write_text(json.dumps(entry))
    with pytest.raises(FormatError, match="is outside the folder"):
        render(run, moving=False)
    list_path(run / "cells.vtkhdf").write_text(json.dumps({"files": []}))
    with pytest.raises(CaseError, match="the series contains no states"):
        render(run, moving=False)
    (run / "cells.000000000.vtkhdf").write_bytes(b"no HDF5")
    with pytest.raises((FormatError, OSError)):
        read_surfaces(run / "cells.000000000.vtkhdf")


ENCODER = """#!/usr/bin/env python3
import sys
frames = sys.stdin.buffer.read()
size = [int(n) for n in sys.argv[sys.argv.index("-s") + 1].split("x")]
if len(frames) % (3 * size[0] * size[1]):
    sys.exit("half a frame")
open(sys.argv[-1], "wb").write(b"%d frames" % (len(frames) // (3 * size[0] * size[1])))
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is all of the path, without packages that make films."""
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    (folder / "env").symlink_to("/usr/bin/env")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    return folder


def test_a_film_goes_to_ffmpeg_as_mp4(programs: Path, tmp_path: Path) -> None:
    target, states = tmp_path / "film.mp4", [lambda k=k: state(1e-6 * k, 1e-6 * k) for k in range(3)]
    with pytest.raises(CaseError) as caught:
        film(target, states, wall())
    assert str(caught.value) == f"{target}: an .mp4 film requires ffmpeg or the package imageio-ffmpeg; or choose .gif"
    (programs / "ffmpeg").write_text(ENCODER)
    (programs / "ffmpeg").chmod(0o755)
    film(target, states, wall())
    assert target.read_bytes() == b"3 frames"
    (programs / "ffmpeg").write_text("#!/usr/bin/env python3\nimport sys\nsys.exit('no such codec')\n")
    with pytest.raises(OSError, match="ffmpeg: no such codec"):
        film(target, states, wall())
    assert target.read_bytes() == b"3 frames"


@pytest.mark.parametrize(
    ("series", "name", "made"),
    [
        ("cells.vtkhdf", "cells.000000010.vtkhdf", True),
        ("cells.vtkhdf", "cells.from-20.000000040.vtkhdf", True),
        ("cells.vtkhdf", "cells.from-20.vtkhdf.series", True),
        ("cells.vtkhdf", "cells.wall.vtkhdf", True),
        ("cells.pos", "cells.000000010.red.pos", True),
        ("cells.pos", "cells.wall.pos", False),
        ("cells.pos", "cells.pos", False),
        ("cells.vtkhdf", "cells.10.vtkhdf", False),
        ("cells.vtkhdf", "more/cells.000000010.vtkhdf", False),
        ("cells.from-500.vtkhdf", "cells.from-500.000001000.vtkhdf", True),
    ],
)
def test_names_that_a_series_makes(series: str, name: str, made: bool) -> None:
    assert is_file_of_series(Path(series), Path(name)) == made
