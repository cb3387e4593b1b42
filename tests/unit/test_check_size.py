# SPDX-License-Identifier: BSD-3-Clause
"""The size of a vessel without its sites, and checks of cases of 10^9 sites."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from case_files import SOURCE, blood_tables, box_tables, changed, check_case, toml_of, tube_tables, vessel_of
from seiche.backend.cpu import CpuBackend
from seiche.case.flow import size
from seiche.cli import main
from seiche.domain.occupancy import SizedSites, occupancy

SHAPES: dict[str, dict[str, Any]] = {
    "tube": {"kind": "tube", "radius": "3.3 mm", "length": "12 mm", "axis": [1.0, 0.4, 0.2]},
    "duct": {"kind": "duct", "width": "4 mm", "height": "6 mm", "length": "10 mm", "periodic": False},
    "channel": {"kind": "channel", "width": "4 mm", "height": "6 mm", "length": "10 mm"},
    "bifurcation": {"kind": "bifurcation"},
}


def tables_of(shape: str) -> dict[str, Any]:
    """Return a case of a shape with velocity inlets and pressure outlets."""
    tables = changed(tube_tables() if shape in ("tube", "duct") else box_tables(), "geometry.shape", SHAPES[shape])
    if shape == "bifurcation":
        outlets = [{"name": f"outlet{k}", "kind": "pressure", "pressure": "0 Pa"} for k in (1, 2)]
        inlet = {"name": "inlet", "kind": "velocity", "velocity": "1 mm/s"}
        tables = changed(changed(tables, "iolet", [inlet, *outlets]), "geometry.spacing", "0.25 mm")
    return tables


def sized(tables: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> SizedSites:
    """Return the vessel of a case without its sites, however few there are."""
    monkeypatch.setattr(size, "MOST_MADE", 0)
    vessel = size.sized_vessel(check_case(tables, SOURCE), Path(), SOURCE)
    assert vessel is not None and isinstance(vessel.sites, SizedSites)
    return vessel.sites


@pytest.mark.parametrize("shape", SHAPES)
def test_sites_and_tiles_are_estimated_from_volume_and_surface(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = tables_of(shape)
    made, estimated = vessel_of(tables).sites, sized(tables, monkeypatch)
    assert len(estimated) == pytest.approx(len(made), rel=0.02)
    assert estimated.shape == pytest.approx(made.shape, abs=2)
    assert [plane.name for plane in estimated.iolets] == [plane.name for plane in made.iolets]
    for edge, run in ((4, 4), (8, 8)):
        exact, guess = occupancy(made, edge, run), occupancy(estimated, edge, run)
        assert guess.tiles == pytest.approx(exact.tiles, rel=0.12)
        assert guess.lanes == pytest.approx(exact.lanes, rel=0.25)


def large_case(kind: str) -> dict[str, Any]:
    """Return a case of about 10^9 sites."""
    if kind == "flow":
        tables = changed(tube_tables(), "geometry.spacing", "10 um")
        return changed(tables, "geometry.shape", {"kind": "tube", "radius": "6.9 mm", "length": "6.9 mm"})
    tables = changed(blood_tables(), "geometry.shape", {"kind": "tube", "radius": "250 um", "length": "600 um"})
    tables["geometry"]["shape"]["periodic"] = True
    return tables


RUN = """
import sys
from pathlib import Path
from seiche.cli import main
status = main(["check", sys.argv[1]])
(peak,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
print("peak", int(peak.split()[1]) * 1024)  # ru_maxrss would include what the parent had before
sys.exit(status)
"""


@pytest.mark.parametrize("kind", ["flow", "blood"])
def test_a_billion_sites_are_sized_in_a_gigabyte(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "case.toml"
    path.write_text(toml_of(large_case(kind)))
    done = subprocess.run([sys.executable, "-c", RUN, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if " " in line.strip())
    assert int(lines["peak"]) < 1 << 30
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("layout list-aa")]
    assert "ranks: at most 2^32 populations each" in row
    (sites,) = [line for line in done.stdout.splitlines() if line.startswith("fluid sites")]
    assert 0.9e9 < int(sites.split()[2].replace(",", "")) < 1.1e9


@pytest.mark.parametrize("kind", ["flow", "blood"])
def test_the_check_allocates_no_field(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "case.toml"
    path.write_text(toml_of(large_case(kind)))
    largest, zeros = [0], CpuBackend.zeros

    def counting(self: CpuBackend, *arguments: Any) -> Any:
        array = zeros(self, *arguments)
        largest[0] = max(largest[0], array.nbytes)
        return array

    monkeypatch.setattr(CpuBackend, "zeros", counting)
    monkeypatch.setattr("seiche.observe.bandwidth.copy_bandwidth", lambda *_: 1e10)
    assert main(["check", str(path)]) == 0
    assert largest[0] < 64 << 20
