# SPDX-License-Identifier: BSD-3-Clause
"""A HemoCell case becomes a case file with the same lengths, times, driving, cells and small-strain moduli."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from case_files import read_case
from seiche.case.flow.hemelb import read_hemelb
from seiche.cli import main
from seiche.errors import FormatError
from seiche.io.formats.stl import read_stl
from stl_files import openscad_tube

DOMAIN = {
    "geometry": "tube.stl",
    "rhoP": "1025",
    "nuP": "1.1e-6",
    "dx": "1e-6",
    "dt": "1e-7",
    "refDir": "1",
    "refDirN": "20",
    "kBT": "4.142e-21",
    "Re": "0.5",
}
SIM = {"tmax": "1000", "tmeas": "500", "tcheckpoint": "200"}
RBC = {
    "name": "RBC",
    "eta_m": "0.0",
    "kBend": "80.0",
    "kVolume": "20.0",
    "kArea": "5.0",
    "kLink": "15.0",
    "minNumTriangles": "600",
    "radius": "3.91e-6",
    "Volume": "90",
}
PLT = {
    "kBend": "250",
    "kVolume": "100",
    "kArea": "8",
    "kLink": "25",
    "minNumTriangles": "66",
    "radius": "1.25e-6",
    "aspectRatio": "0.4",
}
#: The axis of the tube of 20 um is 10 um from the corner of its box, 11 um from HemoCell's first site.
POSITIONS = "2\n10 11 11 0 0 0\n30 11 11 90 0 0\n"


def elements(values: dict[str, str]) -> str:
    return "".join(f"<{name}> {value} </{name}><!-- remark -->\n" for name, value in values.items())


def config(domain: dict[str, str] | None = None, sim: dict[str, str] | None = None, more: str = "") -> str:
    parts = f"<domain>{elements(DOMAIN if domain is None else domain)}</domain>"
    parts += f"<sim>{elements(SIM if sim is None else sim)}</sim>"
    return f'<?xml version="1.0" ?>\n<hemocell>\n{parts}{more}</hemocell>\n'


def cell(values: dict[str, str], more: str = "") -> str:
    return f"<hemocell>\n<MaterialModel>\n{elements(values)}{more}</MaterialModel>\n</hemocell>\n"


def write(folder: Path, text: str | None = None, **files: str) -> Path:
    """Write a case with the red cells RBC unless `files` (suffix after an underscore) replaces their files."""
    contents = {"RBC_xml": cell(RBC), "RBC_pos": POSITIONS, "tube_stl": openscad_tube(), **files}
    for name, content in contents.items():
        stem, _, suffix = name.rpartition("_")
        (folder / f"{stem}.{suffix}").write_text(content)
    path = folder / "config.xml"
    path.write_text(config() if text is None else text)
    return path


def converted(folder: Path, text: str | None = None, **files: str) -> dict[str, Any]:
    """Convert a case and return its tables, which the schema accepts."""
    source, target = write(folder, text, **files), folder / "case.toml"
    assert main(["convert", str(source), str(target)]) == 0
    read_case(target)
    return tomllib.loads(target.read_text())


def refused(folder: Path, capsys: pytest.CaptureFixture[str], text: str | None = None, **files: str) -> str:
    """Convert an invalid case and return its message; no case file is left."""
    source, target = write(folder, text, **files), folder / "case.toml"
    assert main(["convert", str(source), str(target)]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and not target.exists()
    return message


def test_every_value_of_a_case_is_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    converted(tmp_path)
    case = read_case(tmp_path / "case.toml")
    assert case.geometry.spacing == 1e-6 and case.geometry.stl == "tube.stl" and case.geometry.periodic == ("x",)
    assert case.geometry.unit == pytest.approx(20 * 1e-6 / 10)  # the tube of diameter 10 is 20 spacings wide
    assert case.fluid.density == 1025 and case.fluid.viscosity == pytest.approx(1025 * 1.1e-6, rel=1e-11)
    assert case.lattice.step == 1e-7 and case.time.steps == 1000
    assert case.output.fields[0].every == 500 and case.output.cells[0].every == 500
    assert case.output.checkpoint.every == 200
    (red,) = case.cells
    assert red.name == "RBC" and red.shape.kind == "biconcave" and red.shape.diameter == pytest.approx(7.82e-6)
    assert red.shape.vertices == 642 and red.inner_viscosity is None and red.surface_viscosity == 0
    assert (red.positions, red.positions_from, red.positions_outside) == ("RBC.pos", "box", "drop")
    assert "RBC: 0 of 2 cells are not inside the vessel" in capsys.readouterr().out


def test_the_force_gives_the_reynolds_number_of_peak_velocity_and_diameter(tmp_path: Path) -> None:
    converted(tmp_path)
    case = read_case(tmp_path / "case.toml")
    area = 0.5 * 60 * math.sin(2 * math.pi / 60) * 10e-6**2  # of the prism with 60 sides
    radius = math.sqrt(area / math.pi)
    peak = case.body_force.force[0] * radius**2 / (4 * case.fluid.viscosity)  # Hagen-Poiseuille
    assert peak * 2 * radius / 1.1e-6 == pytest.approx(0.5, rel=1e-5)
    assert case.lattice.velocity_scale == pytest.approx(peak, rel=1e-5) and case.body_force.force[1:] == (0, 0)


@pytest.mark.parametrize("reynolds", ["0", None])
def test_without_a_reynolds_number_there_is_no_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reynolds: str | None
) -> None:
    domain = {name: value for name, value in DOMAIN.items() if name != "Re"}
    tables = converted(tmp_path, config(domain if reynolds is None else {**DOMAIN, "Re": reynolds}))
    assert "body_force" not in tables and "velocity_scale" not in tables["lattice"]
    assert ("nothing drives the flow" in capsys.readouterr().out) == (reynolds is None)


def test_a_negative_step_sets_tau_to_one(tmp_path: Path) -> None:
    tables = converted(tmp_path, config({**DOMAIN, "dt": "-1"}))
    assert tables["lattice"]["tau"] == 1.0 and "step" not in tables["lattice"]


def test_outputs_are_optional(tmp_path: Path) -> None:
    tables = converted(tmp_path, config(sim={"tmax": "7"}))
    assert tables["time"] == {"steps": 7} and tables.get("output", {}) == {}


def test_inner_viscosity_and_surface_viscosity_are_converted(tmp_path: Path) -> None:
    values = {**RBC, "eta_m": "5e-10", "enableInteriorViscosity": "1", "viscosityRatio": "5.0"}
    converted(tmp_path, RBC_xml=cell(values))
    (red,) = read_case(tmp_path / "case.toml").cells
    assert red.inner_viscosity == pytest.approx(5 * 1025 * 1.1e-6, rel=1e-11)
    assert red.surface_viscosity == pytest.approx(math.sqrt(3) / 4 * 5e-10, rel=1e-5)
    converted_again = write(tmp_path, RBC_xml=cell({**values, "enableInteriorViscosity": "0"}))
    assert main(["convert", str(converted_again), str(tmp_path / "off.toml")]) == 0
    assert read_case(tmp_path / "off.toml").cells[0].inner_viscosity is None


def test_platelets_are_ellipsoids_after_the_red_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inner = "<InnerEdges><Edge> 0 4 </Edge></InnerEdges><kInnerLink> 25 </kInnerLink>"
    converted(tmp_path, PLT_xml=cell(PLT, inner), PLT_pos="1\n20 11 11 0 0 0\n")
    red, platelet = read_case(tmp_path / "case.toml").cells
    assert (red.name, platelet.name, platelet.shape.kind) == ("RBC", "PLT", "ellipsoid")
    assert platelet.shape.half_axes == pytest.approx((1.25e-6, 1.25e-6, 0.5e-6)) and platelet.shape.vertices == 162
    output = capsys.readouterr().out
    assert "PLT.xml: the mesh has 320 triangles; HemoCell uses 128" in output
    assert "PLT.xml: MaterialModel/InnerEdges: not converted; without these springs" in output
    assert "MaterialModel/kInnerLink: not converted" in output


def test_elements_without_an_equivalent_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = "<verbose><cellsDeletedInfo>1</cellsDeletedInfo></verbose><flow><x>1</x></flow>"
    more += "<parameters><warmup> 10 </warmup><shearRate>5</shearRate><logFile>a</logFile></parameters>"
    more += "<ibm><stepMaterialEvery> 20 </stepMaterialEvery></ibm>"
    text = config({**DOMAIN, "blockSize": "-1", "kRep": "2e-22", "tau": "1"}, more=more)
    converted(tmp_path, text, RBC_xml=cell({**RBC, "eta_v": "0.002", "stiffness": "1"}))
    lines = capsys.readouterr().out.splitlines()
    (listed,) = [line for line in lines if "config.xml: not converted, since their meaning is not known" in line]
    assert listed.endswith(": flow, domain/tau, parameters/shearRate")
    assert "note: RBC.xml: not converted, since their meaning is not known: MaterialModel/stiffness" in lines
    for path in ("domain/kRep", "parameters/warmup", "ibm/stepMaterialEvery", "MaterialModel/eta_v"):
        assert sum(f"{path}: not converted; " in line for line in lines) == 1
    text = (tmp_path / "case.toml").read_text()
    assert all(f"#   {line.removeprefix('note: ')}\n" in text for line in lines if line.startswith("note: "))
    assert not any("blockSize" in line or "logFile" in line for line in lines)


def test_cells_outside_the_vessel_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside, across_the_wall, outside = "10 11 11 0 0 0", "10 11 3 0 0 0", "10 50 50 0 0 0"
    converted(tmp_path, RBC_pos=f"3\n{inside}\n{across_the_wall}\n{outside}\n")
    assert "RBC: 2 of 3 cells are not inside the vessel; a run drops them" in capsys.readouterr().out


def test_types_without_cells_or_files_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"PLT_xml": cell(PLT), "PLT_pos": "0\n", "RBC_old_pos": POSITIONS}
    assert [table["name"] for table in converted(tmp_path, **files)["cells"]] == ["RBC"]
    output = capsys.readouterr().out
    assert (
        "PLT.pos: contains no cell" in output and "RBC_old.pos: not converted, since there is no RBC_old.xml" in output
    )


def test_a_case_without_cells_is_one_of_flow(tmp_path: Path) -> None:
    tables = converted(tmp_path, RBC_pos="0\n")
    assert tables["solver"] == "flow" and "cells" not in tables and "cells" not in tables["output"]


def test_values_of_an_old_config_replace_missing_ones(tmp_path: Path) -> None:
    old = {name: value for name, value in RBC.items() if name not in ("minNumTriangles", "radius")}
    more = "<ibm><radius> 3.5e-6 </radius><minNumOfTriangles> 300 </minNumOfTriangles></ibm>"
    (red,) = converted(tmp_path, config(more=more), RBC_xml=cell(old))["cells"]
    assert red["shape"]["diameter"] == "7 um" and red["shape"]["vertices"] == 162


def test_a_length_that_is_not_whole_is_stretched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path, config({**DOMAIN, "refDirN": "21"}))
    (tmp_path / "new").mkdir()
    target = tmp_path / "new" / "case.toml"
    assert main(["convert", str(source), str(target)]) == 0
    assert "stretched" not in capsys.readouterr().out  # 20 units are 42 spacings
    assert read_case(target).geometry.stl == "../tube.stl" and read_case(target).cells[0].positions == "../RBC.pos"
    longer = openscad_tube().replace("vertex 10 ", "vertex 10.1 ")
    source = write(tmp_path, tube_stl=longer)
    assert main(["convert", str(source), str(target), "--force"]) == 0
    assert (
        "the vessel is 40.2 lattice spacings long; because it is periodic, it was stretched along x to 40"
        in capsys.readouterr().out
    )
    geometry = read_case(target).geometry
    assert geometry.stl == "case-vessel.stl" and geometry.unit == pytest.approx(1e-6)
    extent = np.ptp(read_stl(target.parent / geometry.stl).vertices, axis=0)
    assert extent == pytest.approx((40, 20, 20), rel=1e-6)


def test_files_are_not_replaced_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = write(tmp_path), tmp_path / "case.toml"
    target.write_text("mine")
    assert main(["convert", str(source), str(target)]) == 2
    assert "exists already; add --force to replace it" in capsys.readouterr().err and target.read_text() == "mine"
    assert main(["convert", str(source), str(target), "--force"]) == 0
    longer = openscad_tube().replace("vertex 10 ", "vertex 10.1 ")
    write(tmp_path, config({**DOMAIN, "geometry": "case-vessel.stl"}), **{"case-vessel_stl": longer})
    assert main(["convert", str(source), str(target), "--force"]) == 2
    assert "would replace the surface of the case" in capsys.readouterr().err
    assert (tmp_path / "case-vessel.stl").read_text() == longer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "<config/>",
            "config.xml: line 1, config: this is not a file of HemoCell; its first element must be <hemocell>",
        ),
        ("<hemocell/>", "hemocell: the element <domain> is missing; it is empty"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><hemocell>&b;</hemocell>', "line 1: it declares a document type"),
        ('<!DOCTYPE a SYSTEM "http://127.0.0.1/a"><hemocell/>', "line 1: it declares a document type"),
        ("<hemocell>&undefined;</hemocell>", "line 1: not XML"),
        ("<hemocell>", "not XML"),
        (config(more="<preInlet/>"), "preInlet: a pre-inlet is not converted"),
        (config(more="<domain/>"), "domain[2]: is given twice"),
        (config({**DOMAIN, "dx": "-1"}), "domain/dx: value -1 is out of range; expected > 0"),
        (config({**DOMAIN, "dx": "5e-7 m"}), 'domain/dx: value "5e-7 m" is not a number'),
        (config({**DOMAIN, "dx": "<a>1</a>"}), "domain/dx: contains <a>; expected a value"),
        (config({**DOMAIN, "dx": "9" * 5000}), "domain/dx: value"),
        (config({**DOMAIN, "dt": "0"}), "domain/dt: value 0 is out of range"),
        (config({**DOMAIN, "nuP": "nan"}), 'domain/nuP: value "nan" is not a number'),
        (config({**DOMAIN, "refDir": "3"}), "domain/refDir: value 3 is out of range; expected 0, 1 or 2"),
        (config({**DOMAIN, "refDirN": "1.5"}), 'domain/refDirN: value "1.5" is not a whole number >= 1'),
        (config({**DOMAIN, "Re": "-1"}), "domain/Re: value -1 is out of range; expected >= 0"),
        (config({**DOMAIN, "geometry": "none.stl"}), "domain/geometry: none.stl: cannot be read: No such file"),
        (config({**DOMAIN, "geometry": ""}), "domain/geometry: value"),
        (config(sim={"tmax": "0"}), 'sim/tmax: value "0" is not a whole number >= 1'),
        (config(sim={}), "sim: the element <tmax> is missing"),
    ],
)
def test_a_wrong_config_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, expected: str
) -> None:
    message = refused(tmp_path, capsys, text)
    assert expected in message and "config.xml" in message


def test_a_missing_geometry_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    domain = {name: value for name, value in DOMAIN.items() if name != "geometry"}
    assert "domain: the element <geometry> is missing: the vessel is built" in refused(tmp_path, capsys, config(domain))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"RBC_xml": cell({**RBC, "kLink": "0"})}, "RBC.xml: line 8, MaterialModel/kLink: value 0 is out of range"),
        ({"RBC_xml": cell({**RBC, "kBend": "-2"})}, "MaterialModel/kBend: value -2 is out of range; expected >= 0"),
        ({"RBC_xml": cell({**RBC, "radius": "3.9"})}, "MaterialModel/radius: value 3.9 m is not the radius of a cell"),
        ({"RBC_xml": cell({**RBC, "minNumTriangles": "100000"})}, "minNumTriangles: value 100000 is out of range"),
        ({"RBC_xml": cell({"name": "RBC"})}, "MaterialModel: the element <minNumTriangles> is missing"),
        ({"RBC_xml": "<hemocell/>"}, "RBC.xml: line 1, hemocell: the element <MaterialModel> is missing"),
        ({"RBC_xml": "<!DOCTYPE a><hemocell/>"}, "RBC.xml: line 1: it declares a document type"),
        ({"RBC_pos": "2\n1 2 3 4 5 6\n"}, "RBC.pos: line 1: declares 2 cells, but 1 lines follow"),
        ({"RBC_pos": "1\n1 2 3 4 5\n"}, "RBC.pos: line 2: expected 6 numbers"),
        (
            {"WBC_xml": cell(RBC), "WBC_pos": POSITIONS},
            'WBC.xml: line 1, hemocell: the mechanics of cells called "WBC"',
        ),
        ({"tube_stl": "solid a\nendsolid a\n"}, "tube.stl: whole file: contains no triangle"),
        (
            {"RBC_xml": cell({**RBC, "enableInteriorViscosity": "1"})},
            "MaterialModel: the element <viscosityRatio> is missing",
        ),
        (
            {"PLT_xml": cell({**PLT, "aspectRatio": "0"}), "PLT_pos": POSITIONS},
            "MaterialModel/aspectRatio: value 0 is out of range",
        ),
    ],
)
def test_a_wrong_cell_type_or_surface_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], expected: str
) -> None:
    assert expected in refused(tmp_path, capsys, **files)


def test_sizes_are_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "at most 4 MiB" in refused(tmp_path, capsys, config() + " " * (4 * 1024 * 1024))
    monkeypatch.setattr("seiche.case.blood.hemocell_cells.MAX_POS_BYTES", 10)
    assert "RBC.pos: byte 10: a .pos file has at most 256 MiB" in refused(tmp_path, capsys)
    monkeypatch.setattr("seiche.case.blood.hemocell_cells.MAX_TYPES", 0)
    assert "1 .pos files; a case has at most 0 types of cells" in refused(tmp_path, capsys)


def test_options_and_suffixes_that_make_no_sense_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path)
    assert main(["convert", str(source), str(tmp_path / "case.toml"), "--unit", "1 mm"]) == 2
    assert "--unit: is not allowed for a HemoCell case" in capsys.readouterr().err
    assert main(["convert", str(tmp_path / "tube.stl"), str(tmp_path / "case.toml")]) == 2
    assert "tube.stl: only a HemoCell config.xml can be converted to a .toml file" in capsys.readouterr().err
    with pytest.raises(FormatError, match="this is a case of HemoCell; convert it first: seiche convert"):
        read_hemelb(source)


def test_the_usual_red_cell_has_the_documented_moduli(tmp_path: Path) -> None:
    (red,) = converted(tmp_path, config({**DOMAIN, "dx": "5e-7", "refDirN": "40"}))["cells"]
    values = {key: float(str(red[key]).split()[0]) for key in ("shear_modulus", "local_area", "bending", "volume")}
    assert values["shear_modulus"] == pytest.approx(8.3e-6, rel=0.01)
    assert values["local_area"] == pytest.approx(1.16e-6, rel=0.01)
    assert values["bending"] == pytest.approx(4.4e-19, rel=0.01)
    assert values["volume"] == pytest.approx(490, rel=0.01)
    assert red["area_ratio"] == 0.5 and red["area"] == "0 N/m" and red["law"] == "skalak"
