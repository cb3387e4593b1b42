# SPDX-License-Identifier: BSD-3-Clause
"""Files of arrays that lie about their size, are damaged or lead to other files are rejected in one line."""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from case_files import toml_of, tube_tables
from gmy_files import INLET, four_cube
from seiche.cli import main
from seiche.errors import CaseError, FormatError
from seiche.io import arrays
from seiche.io.arrays import hdf5_file, read_npy, read_npz, values_of
from seiche.io.files import part_path, replacing
from seiche.io.formats.gmy import read_gmy
from seiche.io.formats.stl import read_stl
from seiche.ultrasound import Grid

SHAPE = (4, 3)


def npy(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04 no archive", "not a NumPy file of numbers"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3), }"), "not a NumPy file of numbers"),
        (npy("{'descr': '<f8', ("), "not a NumPy file of numbers"),
        (npy('{\'descr\': """<f8'), "not a NumPy file of numbers"),
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (4, 3), }"), "not an array of numbers"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4, 9), }"), "shape (4, 9) is not the grid's (4, 3)"),
        (b"\x93NUMPY\x03\x00", "version (3, 0) of the format does not contain plain numbers"),
    ],
)
def test_damaged_npy(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read_npy(path, SHAPE)
    assert reason in str(caught.value) and "\n" not in str(caught.value)


def test_npy_that_claims_more_than_the_file_or_the_memory_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, shape = tmp_path / "x.npy", (1 << 20, 1 << 10)
    path.write_bytes(npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"))
    with pytest.raises(FormatError, match="declares 8589934592 bytes: more than the file can contain"):
        read_npy(path, shape)
    np.save(path, np.ones(SHAPE))
    monkeypatch.setattr(arrays, "available_memory", lambda: 95)
    with pytest.raises(FormatError, match="has 96 bytes: only 95 bytes of memory are free"):
        read_npy(path, SHAPE)


@pytest.mark.parametrize("damage", ["method", "encrypted", "bomb", "short"])
def test_damaged_npz(tmp_path: Path, damage: str) -> None:
    path, shape = tmp_path / "x.npz", ((1 << 13, 1 << 13) if damage == "bomb" else SHAPE)
    stream = io.BytesIO()
    np.save(stream, np.ones(SHAPE))
    member = stream.getvalue()
    if damage == "bomb":
        member = npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}") + bytes(64)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("density.npy", member[: -8 if damage == "short" else None])
    content = bytearray(path.read_bytes())
    for mark, flags, method in ((b"PK\x03\x04", 6, 8), (b"PK\x01\x02", 8, 10)):
        at = content.index(mark)
        content[at + flags] |= damage == "encrypted"
        content[at + method] = 99 if damage == "method" else content[at + method]
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        read_npz(path, ("density",), shape)
    assert str(caught.value).startswith(f"{path}: density: ") and "\n" not in str(caught.value)


def external_link(file: h5py.File, other: Path) -> None:
    file["x"] = h5py.ExternalLink(str(other), "secret")


def group_of_another(file: h5py.File, other: Path) -> None:
    file.create_group("deep/inside")["x"] = h5py.ExternalLink(str(other), "/")


def external_storage(file: h5py.File, other: Path) -> None:
    file.create_dataset("x", (4,), "u1", external=[(str(other), 0, 4)])


def virtual(file: h5py.File, other: Path) -> None:
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource(str(other), "secret", (4,))
    file.create_virtual_dataset("x", layout)


def claims(file: h5py.File, other: Path) -> None:
    file.create_dataset("x", (1 << 40,), "f8", chunks=(1 << 20,))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (external_link, "x: is a link to another file, which is not followed"),
        (group_of_another, "deep/inside/x: is a link to another file, which is not followed"),
        (external_storage, "x: is stored in other files, which are not read"),
        (virtual, "x: is stored in other files, which are not read"),
        (claims, "x: declares 8796093022208 bytes: more than the file can contain"),
    ],
)
def test_hdf5_that_leads_outside(tmp_path: Path, make: Callable[[h5py.File, Path], None], reason: str) -> None:
    path, other = tmp_path / "x.h5", tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["secret"] = np.arange(4.0)
    with h5py.File(path, "w") as file:
        make(file, other)
    with pytest.raises(FormatError) as caught, hdf5_file(path, "not a file") as file:
        values_of(file, "x")
    assert str(caught.value) == f"{path}: {reason}"
    with h5py.File(path, "w") as file:
        file["data"], file["x"] = np.arange(4.0), h5py.SoftLink("/data")
    with hdf5_file(path, "not a file") as file:
        assert values_of(file, "x").tolist() == [0, 1, 2, 3]


def test_hdf5_headers_that_ask_for_more_memory_than_a_process_has(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        for number in range(40):  # more attributes than one block of the header holds: it has a continuation
            file.attrs[f"name{number}"] = np.arange(8.0)
    content = bytearray(path.read_bytes())
    end = len(content).to_bytes(8, "little")
    at = content.index(b"HEAP")
    content[at + 8 : at + 16] = (1 << 32).to_bytes(8, "little")  # the size of the local heap
    content = content.replace(end, (1 << 33).to_bytes(8, "little"), 1)  # the end of the file in the superblock
    path.write_bytes(content)
    with path.open("r+b") as stream:
        stream.truncate(1 << 33)  # sparse
    with pytest.raises(FormatError, match="not a file: Link visitation failed"), hdf5_file(path, "not a file"):
        pass


@pytest.mark.parametrize("size", [0, (1 << 64) - 32])
def test_hdf5_texts_in_which_the_library_would_search_for_ever(size: int, tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "GCOL in a text"
    with hdf5_file(path, "not a file") as file:
        assert file.attrs["title"] == "GCOL in a text"
    content = bytearray(path.read_bytes())
    free = content.index(b"GCOL") + 16 + 16 + 16  # after the header and one object of 14 bytes
    assert content[free : free + 2] == b"\0\0" and content[free + 8 : free + 16] != b"\0" * 8
    content[free + 8 : free + 16] = size.to_bytes(8, "little")
    path.write_bytes(content)
    message = f"byte {free}: object 0 of a global heap declares {size} bytes"
    with pytest.raises(FormatError, match=message), hdf5_file(path, "not a file") as file:
        assert file.attrs["title"]


def test_no_part_is_written_through_a_symbolic_link(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "x.json"
    victim.write_text("kept")
    (tmp_path / "x.json.part").symlink_to(victim)
    with pytest.raises(OSError, match=r"is a symbolic link, which is not followed: remove it: .*x\.json\.part"):
        part_path(path)
    with pytest.raises(OSError, match="symbolic link"), replacing(path) as part:
        part.write_text("other")
    assert victim.read_text() == "kept"


def test_gmy_with_cut_fractions_that_are_no_numbers(tmp_path: Path) -> None:
    path, good = tmp_path / "x.gmy", four_cube()
    assert len(read_gmy(path_of(path, good.file())).iolets) == 2
    for wrong in (math.inf, math.nan, -math.inf, 1e38):
        sites = {}
        for at, site in good.sites.items():
            cuts = {step: (kind, wrong if kind == INLET else q) for step, (kind, q) in site.cuts.items()}
            sites[at] = replace(site, cuts=cuts)
        with pytest.raises(FormatError, match=r"fraction is not in \(0, 1\]"):
            read_gmy(path_of(path, replace(good, sites=sites).file()))


def path_of(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_ascii_stl_with_a_file_that_ends_in_a_loop(tmp_path: Path) -> None:
    text = b"solid x\nfacet\nouter loop\nvertex 0 0 0\nendsolid x\nsolid y\nouter loop\nvertex 1 0 0\nvertex 0 1 0\n"
    with pytest.raises(FormatError, match='line 5: a loop ends with "endloop"'):
        read_stl(path_of(tmp_path / "x.stl", text + b"vertex 0 0 1\nendloop\nendsolid\n"))


def test_grids_of_absurd_sizes() -> None:
    for shape in ((10**30, 40), (10**400, 2), (2**20, 2**20, 2**20)):
        with pytest.raises(CaseError, match="more than 281,474,976,710,656 points"):
            Grid(shape, 1e-3)


def test_a_case_whose_path_is_no_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "caf\udce9"
    folder.mkdir()
    (folder / "case.toml").write_text(toml_of(tube_tables()))
    assert main(["run", str(folder / "case.toml")]) == 0
    assert "caf\\udce9" in capsys.readouterr().out
    assert main(["check", str(folder / "none.toml")]) == 2
