# SPDX-License-Identifier: BSD-3-Clause
"""HemeLB extraction files: the bytes are those of the format, what is read is what was computed."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from case_files import advice, changed, setup_of, toml_of, tube_tables
from seiche.case.flow.extraction import selected_sites
from seiche.case.flow.limits import check_limits
from seiche.case.flow.schema_extraction import ExtractionOutput
from seiche.case.loading import load
from seiche.domain.sites import LinkKind
from seiche.domain.world import World
from seiche.errors import CaseError, FormatError
from seiche.io.formats.extraction import (
    ExtractionField,
    encode_offsets,
    read_extraction,
    read_offsets,
)
from seiche.io.formats.extraction_series import ExtractionSeries

MMHG = 133.322387415
COORDS = np.array([(1, 2, 3), (1, 2, 4)], np.int32)
FIELDS = (ExtractionField("pressure", 1, 0, (80.0,)), ExtractionField("u", 3), ExtractionField("mpirank", 1, 2))
CONTENT: Any = {"spacing": 0.5, "origin": (1.0, 2.0, 3.0), "coords": COORDS, "fields": FIELDS}


def write_small(path: Path) -> None:
    with ExtractionSeries(path, World.serial(), **CONTENT) as series:
        for step in (7, 9):
            values = {"pressure": np.array([80.5, 81.0]) + step, "u": np.ones((2, 3)) * step, "mpirank": [0, 0]}
            series.write(step, values)


def expected_bytes() -> bytes:
    """Return the bytes of `write_small` from the description of the format, number by number."""
    fields = struct.pack(">I8sIIIf", 8, b"pressure", 1, 0, 1, 80.0)
    fields += struct.pack(">I4sIII", 1, b"u\0\0\0", 3, 0, 0)
    fields += struct.pack(">I8sIII", 7, b"mpirank\0", 1, 2, 0)
    head = b"hlb!" + b"xtr\x04" + struct.pack(">IddddQII", 5, 0.5, 1.0, 2.0, 3.0, 2, 3, len(fields))
    assert len(head) == 60
    records = b""
    for step in (7, 9):
        records += struct.pack(">Q", step)
        records += struct.pack(">IIIffffi", 1, 2, 3, 0.5 + step, step, step, step, 0)
        records += struct.pack(">IIIffffi", 1, 2, 4, 1.0 + step, step, step, step, 0)
    return head + fields + records


def test_every_byte_is_that_of_the_format(tmp_path: Path) -> None:
    write_small(tmp_path / "a.xtr")
    assert (tmp_path / "a.xtr").read_bytes() == expected_bytes()
    start = 60 + 28 + 20 + 24
    assert (tmp_path / "a.off").read_bytes() == b"hlb!" + b"off\x04" + struct.pack(">IiQQ", 1, 1, start, start + 72)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.off", "a.xtr"]


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    write_small(tmp_path / "a.xtr")
    read = read_extraction(tmp_path / "a.xtr")
    assert (read.version, read.header.spacing, read.header.origin, read.header.sites) == (5, 0.5, (1.0, 2.0, 3.0), 2)
    assert read.steps.tolist() == [7, 9]
    assert read.coords.tolist() == COORDS.tolist()
    assert read.values["pressure"][:, :, 0].tolist() == [[87.5, 88.0], [89.5, 90.0]]
    assert read.values["u"].shape == (2, 2, 3)
    assert read.values["mpirank"].dtype == np.int32
    assert read_offsets(tmp_path / "a.off").tolist() == [132, 132 + read.header.record_bytes]


def test_version_4_of_hemepure_is_read(tmp_path: Path) -> None:
    fields = struct.pack(">I8sId", 8, b"pressure", 1, 80.0) + struct.pack(">I8sId", 8, b"velocity", 3, 0.0)
    head = b"hlb!" + b"xtr\x04" + struct.pack(">IddddQII", 4, 1e-3, 0.0, 0.0, 0.0, 1, 2, len(fields))
    record = struct.pack(">QIIIffff", 100, 4, 5, 6, 0.25, 1.0, 2.0, 3.0)
    (tmp_path / "a.dat").write_bytes(head + fields + record)
    read = read_extraction(tmp_path / "a.dat")
    assert read.version == 4
    assert read.values["pressure"].tolist() == [[[80.25]]]
    assert read.values["velocity"].tolist() == [[[1.0, 2.0, 3.0]]]
    assert (read.steps.tolist(), read.coords.tolist()) == ([100], [[4, 5, 6]])


def test_offsets_go_into_a_file_and_back(tmp_path: Path) -> None:
    (tmp_path / "a.off").write_bytes(encode_offsets([100, 200, 2**40]))
    assert read_offsets(tmp_path / "a.off").tolist() == [100, 200, 2**40]


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (0, b"x", "byte 0: it does not begin with the magic numbers"),
        (8, struct.pack(">I", 6), "byte 8: version 6 is not supported, only versions 4 and 5"),
        (12, struct.pack(">d", -1.0), "byte 12: voxel size and origin must be finite"),
        (44, struct.pack(">Q", 2**60), "byte 44: .* sites do not fit in 276 bytes"),
        (44, struct.pack(">Q", 3), r"record 1 \(byte 236\): it has 40 bytes, not 104: .* truncated or damaged"),
        (52, struct.pack(">I", 2**31), "byte 52: 2147483648 fields in 72 bytes do not fit"),
        (52, struct.pack(">I", 2), "byte 108: the field header ends here, not at the declared byte 132"),
        (52, struct.pack(">I", 4), "byte 132: the field header ends at byte 132 inside a field"),
        (60, struct.pack(">I", 999), "byte 64: the field header ends at byte 132 inside a field"),
        (64, b"\xff", "byte 60: the name of a field is not UTF-8"),
        (72, struct.pack(">I", 0), "byte 60: a field of 0 components, type 0 and 1 offsets is not possible"),
        (76, struct.pack(">I", 6), "byte 60: a field of 1 components, type 6"),
        (80, struct.pack(">I", 2), "byte 60: a field of 1 components, type 0 and 2 offsets"),
        (204, struct.pack(">Q", 7), r"record 1 \(byte 204\): its step 7 is not greater than the previous step"),
        (204, struct.pack(">Q", 0), r"record 1 \(byte 204\): its step 0 .* an unfinished record"),
        (212, struct.pack(">I", 5), "records: their sites differ"),
    ],
)
def test_damaged_extraction_is_named_by_location_and_reason(
    tmp_path: Path, at: int, value: bytes, message: str
) -> None:
    data = expected_bytes()
    (tmp_path / "a.xtr").write_bytes(data[:at] + value + data[at + len(value) :])
    with pytest.raises(FormatError, match=rf"a\.xtr: {message}"):
        read_extraction(tmp_path / "a.xtr")


def test_two_fields_of_one_name_and_short_files_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.xtr").write_bytes(
        expected_bytes().replace(b"mpirank\0", b"pressure").replace(b"\0\0\0\x07p", b"\0\0\0\x08p")
    )
    with pytest.raises(FormatError, match="byte 60: two fields have the same name"):
        read_extraction(tmp_path / "a.xtr")
    (tmp_path / "a.xtr").write_bytes(b"hlb!")
    with pytest.raises(FormatError, match="byte 4: the file ends inside its 60-byte header"):
        read_extraction(tmp_path / "a.xtr")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"hlb!", "byte 4: the file ends inside its 16-byte header"),
        (struct.pack(">IIIi", 0, 0, 1, 1), "byte 0: it does not begin as a HemeLB offset file of version 1"),
        (b"hlb!off\x04" + struct.pack(">Ii", 1, -1), "byte 12: -1 ranks do not fit its 16 bytes"),
        (b"hlb!off\x04" + struct.pack(">IiQQ", 1, 1, 5, 4), "byte 16: its offsets do not ascend"),
    ],
)
def test_damaged_offsets_are_named(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "a.off").write_bytes(data)
    with pytest.raises(FormatError, match=rf"a\.off: {message}"):
        read_offsets(tmp_path / "a.off")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_bytes_never_crash_the_reader(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(expected_bytes()[: data.draw(st.integers(0, 276))])
    for _ in range(data.draw(st.integers(0, 6))) if content else ():
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "a.xtr").write_bytes(content)
    for read in (read_extraction, read_offsets):
        try:
            read(tmp_path / "a.xtr")
        except FormatError as error:
            assert "\n" not in str(error)


def test_wrong_arrays_are_rejected_and_nothing_is_left(tmp_path: Path) -> None:
    with ExtractionSeries(tmp_path / "a.xtr", World.serial(), **CONTENT) as series:
        with pytest.raises(ValueError, match=r"fields \['u'\] differ from"):
            series.write(1, {"u": np.ones((2, 3))})
        with pytest.raises(ValueError, match=r"field 'u': shape \(3, 3\); expected \(2, 3\)"):
            series.write(1, {"pressure": np.ones(2), "u": np.ones((3, 3)), "mpirank": np.ones(2)})
    assert list(tmp_path.iterdir()) == []


def table(**keys: Any) -> ExtractionOutput:
    return ExtractionOutput.model_validate({"file": "a.xtr", "every": 1, **keys})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"sites": "plane", "point": ["0 m", "0 m", "0 m"]},
            'normal: is missing; sites = "plane" needs point and norm',
        ),
        ({"sites": "sphere", "radius": "1 mm"}, 'point: is missing; sites = "sphere" needs point and radius'),
        ({"radius": "1 mm"}, 'radius: is not allowed with sites = "whole"'),
        (
            {"sites": "plane", "point": ["0 m", "0 m", "0 m"], "normal": [0.0, 0.0, 0.0]},
            "normal: its length is zero; expected a direction",
        ),
        (
            {"sites": "line", "point": ["0 m", "0 m", "0 m"], "end": ["0 m", "0 m", "0 m"]},
            "end: is equal to point; a line needs two points",
        ),
        ({"names": ["p"]}, "names: 1 names are given for 2 fields"),
        ({"names": ["p", "p"]}, 'fields: two fields have the name "p" in the file'),
        ({"file": "a.off"}, 'file: the ending ".off" is reserved for the offset file; expected a name such as "a.xtr"'),
        ({"file": ".."}, 'file: ".." is not a path inside output.folder'),
        ({"every": "1 fs"}, "every: is shorter than half a time step"),
    ],
)
def test_impossible_extractions_are_rejected_with_one_line(keys: dict[str, Any], message: str) -> None:
    tables = changed(tube_tables(), "output", {"extraction": [{"file": "a.xtr", "every": 10, **keys}]})
    with pytest.raises(CaseError) as raised:
        check_limits(setup_of(tables))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_two_extractions_may_not_share_their_offset_file() -> None:
    tables = changed(
        tube_tables(), "output", {"extraction": [{"file": "a.xtr", "every": 1}, {"file": "a.dat", "every": 1}]}
    )
    with pytest.raises(CaseError, match=r'two outputs have the same file name "a\.off"'):
        setup_of(tables)


def test_choices_of_sites_are_the_sites_that_are_there() -> None:
    sites = setup_of(tube_tables()).vessel.sites  # along x, 0.25 mm apart, radius 1 mm, length 4 mm
    position = np.asarray(sites.origin) + sites.spacing * sites.coords
    axis = np.hypot(position[:, 1], position[:, 2])
    wall = np.zeros(len(sites), bool)
    wall[sites.boundary[(sites.link_kind == LinkKind.WALL).any(axis=1)]] = True
    inlet = np.zeros(len(sites), bool)
    inlet[sites.boundary[(sites.link_kind == LinkKind.INLET).any(axis=1)]] = True
    x = position[:, 0].min() + 4 * 0.25e-3
    middle = [f"{x} m", "0 m", "0 m"]
    near = np.linalg.norm(position - (x, 0, 0), axis=1)
    edge = np.linalg.norm(position - (x, 1e-3, 0), axis=1)
    expected = {
        "whole": (table(), np.ones(len(sites), bool)),
        "surface": (table(sites="surface"), wall),
        "inlet": (table(sites="inlet"), inlet),
        "plane": (
            table(sites="plane", point=middle, normal=[-3.0, 0.0, 0.0]),
            np.isclose(position[:, 0], x),
        ),
        "disc": (
            table(sites="plane", point=middle, normal=[1.0, 0.0, 0.0], radius="0.4 mm"),
            np.isclose(position[:, 0], x) & (axis <= 0.4e-3),
        ),
        "line": (
            table(sites="line", point=middle, end=[f"{x + 1e-3} m", "0 m", "0 m"]),
            (position[:, 0] > x - 1e-9) & (position[:, 0] < x + 1e-3 + 1e-9) & (axis <= 0.25e-3 * 0.7072),
        ),
        "sphere": (table(sites="sphere", point=middle, radius="0.6 mm"), near <= 0.6e-3),
        "surfaceWithinSphere": (
            table(sites="surfaceWithinSphere", point=middle, radius="0.9 mm"),
            wall & (near <= 0.9e-3),
        ),
        "surfacepoint": (
            table(sites="surfacepoint", point=[f"{x} m", "1 mm", "0 m"]),
            wall & (edge <= 0.25e-3 * 3**0.5),
        ),
    }
    for name, (request, flags) in expected.items():
        assert 0 < flags.sum(), name
        assert selected_sites(request, sites).tolist() == np.flatnonzero(flags).tolist(), name


def test_files_of_a_run_hold_its_fields_in_the_units_of_hemelb(tmp_path: Path) -> None:
    fields = list(ExtractionOutput.model_fields["fields"].default)
    fields += ["shearrate", "vonmisesstress", "shearstress", "stresstensor", "traction"]
    fields += ["tangentialprojectiontraction", "normalprojectiontraction", "mpirank"]
    tables = changed(tube_tables(), "time.steps", 40)
    tables["fluid"]["reference_pressure"] = "80 mmHg"
    tables["iolet"][1]["pressure"] = "80 mmHg"
    tables["output"] = {
        "extraction": [
            {"file": "all.xtr", "every": 20, "fields": fields, "names": ["p (mmHg)", *fields[1:]]},
            {"file": "none.xtr", "every": 20, "sites": "sphere", "point": ["1 m", "1 m", "1 m"], "radius": "1 mm"},
        ]
    }
    (tmp_path / "case.toml").write_text(toml_of(tables))
    with load(tmp_path / "case.toml") as simulation:
        simulation.run()
        si = simulation.fields("pressure", "velocity", "shear_rate", "stress", "wall_shear_stress")
    sites = simulation.setup.vessel.sites
    line = 'output.extraction["none.xtr"]: the selection contains no site, so its records are empty'
    assert line in advice(simulation.setup)
    read = read_extraction(tmp_path / "out" / "all.xtr")
    assert read.steps.tolist() == [20, 40]
    assert read.coords.tolist() == sites.coords.tolist()
    assert (read.header.spacing, read.header.origin) == (sites.spacing, sites.origin)
    assert read.header.fields[0].offsets == (pytest.approx(80.0),)
    last = {name: values[-1] for name, values in read.values.items()}
    # The offset keeps the digits of the small differences: single precision of them, not of 80 mmHg.
    excess = si["pressure"] / MMHG - 80.0
    assert np.abs(last["p (mmHg)"][:, 0] - 80.0 - excess).max() < 1e-6 * np.abs(excess).max()
    assert last["velocity"] == pytest.approx(si["velocity"], rel=1e-6, abs=1e-12)
    assert last["shearrate"][:, 0] == pytest.approx(si["shear_rate"], rel=1e-6)
    assert last["shearstress"][:, 0] == pytest.approx(np.linalg.norm(si["wall_shear_stress"], axis=1), rel=1e-6)
    assert last["tangentialprojectiontraction"] == pytest.approx(si["wall_shear_stress"], rel=1e-6, abs=1e-12)
    assert not last["mpirank"].any()
    xx, yy, zz, xy, xz, yz = si["stress"].T
    squares = ((xx - yy) ** 2 + (yy - zz) ** 2 + (zz - xx) ** 2 + 6 * (xy**2 + xz**2 + yz**2)) / 2
    assert last["vonmisesstress"][:, 0] == pytest.approx(np.sqrt(squares), rel=1e-6)
    p = si["pressure"]
    total = np.stack([xx - p, xy, xz, yy - p, yz, zz - p], axis=1)
    assert last["stresstensor"] == pytest.approx(total, rel=1e-6, abs=1e-9)
    split = last["normalprojectiontraction"] + last["tangentialprojectiontraction"]
    assert split == pytest.approx(last["traction"], rel=1e-5, abs=1e-6 * p.max())
    assert read_extraction(tmp_path / "out" / "none.xtr").header.sites == 0
    assert read_offsets(tmp_path / "out" / "all.off")[-1] == read_offsets(tmp_path / "out" / "all.off")[0] + (
        read.header.record_bytes
    )
    assert (tmp_path / "out" / "summary.json").read_text().count("xtr") == 2
