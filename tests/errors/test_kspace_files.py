# SPDX-License-Identifier: BSD-3-Clause
"""Wrong k-Wave files and command lines: one line each; damaged files never crash the reader."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from kwave_files import write_input
from seiche.dropin.options import parse
from seiche.dropin.problem import problem_of
from seiche.dropin.program import main
from seiche.errors import CaseError, FormatError, SeicheError
from seiche.io.formats.kwave import read_input

SHAPE = (1, 20, 24)
P0: dict[str, Any] = {"p0_source_flag": 1, "p0_source_input": np.ones(SHAPE)}
P: dict[str, Any] = {
    "p_source_flag": 5,
    "p_source_mode": 2,
    "p_source_many": 1,
    "p_source_index": np.array([[[3, 4]]]),
    "p_source_input": np.ones((1, 5, 2)),
}


def error_message_of(path: Path) -> str:
    with pytest.raises(FormatError) as caught:
        problem_of(read_input(path))
    text = str(caught.value)
    assert text.startswith(str(path)) and "\n" not in text
    return text.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"Nx": 1}, "Nx: 1 points are too few"),
        ({"Nx": 1 << 40}, "Nx: 1099511627776 is not between 0 and 2147483648"),
        ({"Nx": 1 << 30, "Ny": 1 << 30}, "Nx: 1073741824 x 1073741824 x 1 points are too many"),
        ({"Nt": 0}, "Nt: 0 time steps are too few"),
        ({"dt": None}, "dt: is missing"),
        ({"dt": -1.0}, "dt: -1.0 is not a positive finite number"),
        ({"dx": np.nan}, "dx: nan is not a positive finite number"),
        ({"dt": 1}, "dt: contains uint64 (data_type long), not float numbers"),
        ({"Nx": 24.0}, "Nx: contains float32 (data_type float), not long numbers"),
        ({"pml_x_size": 13}, "pml_x_size: 13 is more than half of 24 points"),
        ({"pml_y_alpha": -2.0}, "pml_y_alpha: -2.0 must be >= 0"),
        ({"nonuniform_grid_flag": 1}, "nonuniform_grid_flag: 1: this kind of simulation is not supported"),
        ({"axisymmetric_flag": 2}, "axisymmetric_flag: 2 is not between 0 and 1"),
        (
            {"axisymmetric_flag": 1, "absorbing_flag": 1},
            "absorbing_flag: 1 on an axisymmetric grid; expected 0 or 2 (Stokes absorption)",
        ),
        ({"axisymmetric_flag": 1, "pml_y_size": 21}, "pml_y_size: 21 is more than the 20 points"),
        (
            {"axisymmetric_flag": 1, "transducer_source_flag": 9, "u_source_index": np.array([[[3]]])},
            "transducer_source_flag: 9: transducers are not supported on axisymmetric grids",
        ),
        ({"absorbing_flag": 3}, "absorbing_flag: 3 is not between 0 and 2"),
        ({"absorbing_flag": 1}, "alpha_power: is missing"),
        (
            {"absorbing_flag": 1, "alpha_power": 1.0, "alpha_coeff": 0.5},
            "input: alpha_power: 1 is too close to 1, where the dispersion term tan(pi y/2) is singular; use another"
            ' exponent, or alpha_mode = "no_dispersion"',
        ),
        (
            {"absorbing_flag": 1, "alpha_power": 3.5, "alpha_coeff": 0.5},
            "input: alpha_power: 3.5 is not between 0 and 3",
        ),
        ({"absorbing_flag": 1, "alpha_power": 1.5, "alpha_coeff": -0.5}, "input: alpha_coeff: -0.5 is not >= 0"),
        ({"nonlinear_flag": 1}, "BonA: is missing"),
        ({"c0": np.ones((1, 20, 23)), "rho0": 1000.0}, "c0: has 460 numbers, not 1 or 480"),
        ({"c0": np.ones((1, 24, 20))}, "c0: has shape (1, 24, 20), not (1, 20, 24)"),
        ({"c0": 0.0}, "c0: 0 is not a positive number"),
        ({"rho0": np.inf}, "rho0: not every value is a finite number"),
        ({"p0_source_flag": 1, "p0_source_input": None}, "p0_source_input: is missing"),
        ({"p0_source_flag": 2}, "p0_source_flag: 2 is not between 0 and 1"),
        ({**P, "p_source_mode": 3}, "p_source_mode: 3 is not between 0 and 2"),
        (
            {**P, "p_source_index": np.array([[[3, 481]]])},
            "p_source_index: index 481 is not between 1 and 480, the points of the grid",
        ),
        ({**P, "p_source_index": None}, "p_source_index: is missing"),
        ({**P, "p_source_input": np.ones((1, 4, 2))}, "p_source_input: has 8 numbers, not 10"),
        ({**P, "p_source_input": np.full((1, 5, 2), np.nan)}, "p_source_input: not every value is a finite number"),
        (
            {"uz_source_flag": 5, **{k.replace("p_", "u_"): v for k, v in P.items() if k != "p_source_flag"}},
            "uz_source_flag: 5: the grid has no axis z",
        ),
        (
            {
                "transducer_source_flag": 9,
                "u_source_index": np.array([[[3]]]),
                "delay_mask": np.array([[[3]]]),
                "transducer_source_input": np.ones((1, 1, 10)),
            },
            "transducer_source_flag: 9 steps with delays up to 2 need more samples than the 10 of"
            " transducer_source_input",
        ),
        (
            {"sensor_mask_index": np.array([[[0]]])},
            "sensor_mask_index: index 0 is not between 1 and 480, the points of the grid",
        ),
        ({"sensor_mask_type": 2}, "sensor_mask_type: 2 is not between 0 and 1"),
        (
            {"sensor_mask_type": 1, "sensor_mask_corners": np.ones((1, 1, 5), int)},
            "sensor_mask_corners: has 5 numbers, not six per cuboid",
        ),
        (
            {"sensor_mask_type": 1, "sensor_mask_corners": np.array([[[1, 1, 1, 25, 2, 1]]])},
            "sensor_mask_corners: a cuboid is not inside the grid of (24, 20, 1) points",
        ),
    ],
)
def test_wrong_dataset_is_named(change, words, tmp_path):
    data = P0 | change
    if "rho0" not in change or np.ndim(change["rho0"]):
        data = {"rho0": 1000.0} | data
    assert error_message_of(write_input(tmp_path / "in.h5", SHAPE, **data)) == words


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("file_type", "output", "attribute file_type: is 'output', not 'input'"),
        ("file_type", None, "attribute file_type: is missing"),
        ("minor_version", "3", "attribute major_version: version 1.3 is not 1.0, 1.1 or 1.2"),
        ("major_version", "2", "attribute major_version: version 2.2 is not 1.0, 1.1 or 1.2"),
    ],
)
def test_wrong_header_is_named(name, text, words, tmp_path):
    path = write_input(tmp_path / "in.h5", SHAPE, **P0)
    with h5py.File(path, "r+") as file:
        del file.attrs[name]
        if text is not None:
            file.attrs[name] = np.bytes_(text)
    assert error_message_of(path) == words


def test_dataset_without_its_attributes_or_of_another_kind_is_named(tmp_path):
    path = write_input(tmp_path / "in.h5", SHAPE, **P0)
    with h5py.File(path, "r+") as file:
        file["c0"].attrs["domain_type"] = np.bytes_("complex")
    assert error_message_of(path) == "c0: attribute domain_type is 'complex', not 'real'"
    with h5py.File(path, "r+") as file:
        del file["c0"].attrs["data_type"]
    assert error_message_of(path) == "c0: contains float32 (data_type missing), not float numbers"
    with h5py.File(path, "r+") as file:
        del file["c0"]
        file.create_group("c0")
    assert error_message_of(path) == "c0: is not a dataset"


def test_dataset_that_claims_more_than_the_file_holds_is_not_read(tmp_path):
    path = write_input(tmp_path / "in.h5", SHAPE, **{**P0, "sensor_mask_index": None})
    with h5py.File(path, "r+") as file:
        huge = file.create_dataset("sensor_mask_index", (1, 1, 1 << 40), "<u8", chunks=(1, 1, 1 << 20))
        huge.attrs["data_type"], huge.attrs["domain_type"] = np.bytes_("long"), np.bytes_("real")
    assert error_message_of(path) == ("sensor_mask_index: declares 8796093022208 bytes: more than the file can contain")


def test_missing_and_foreign_files_are_named(tmp_path):
    assert error_message_of(tmp_path / "none.h5") == "file: does not exist"
    path = tmp_path / "text.h5"
    path.write_text("no HDF5")
    assert error_message_of(path).startswith("file: cannot be read as HDF5 (")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("fuzz") / "in.h5"
    data = {**P0, **P, "absorbing_flag": 1, "alpha_coeff": 0.5, "alpha_power": 1.5}
    return write_input(
        path, (1, 4, 6), **(data | {"p0_source_input": np.ones((1, 4, 6)), "pml_x_size": 1, "pml_y_size": 1})
    ).read_bytes()


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_are_rejected_in_one_line_or_read(whole, tmp_path, data):
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 20))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    length = data.draw(st.sampled_from([len(damaged), len(damaged) // 2, len(damaged) - 8, 100]))
    path = tmp_path / "fuzz.h5"
    path.write_bytes(damaged[:length])
    try:
        problem_of(read_input(path))
    except SeicheError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("-o b", "option -i is missing"),
        ("-i a", "option -o is missing"),
        ("-i a -o b --unknown", "option --unknown not recognized"),
        ("-i a -o b rest", "argument 'rest' is not an option"),
        ("-i a -o b -t zero", "-t zero: not a whole number"),
        ("-i a -o b -c 10", "-c 10: not between 0 and 9"),
        ("-i a -o b -r 0", "-r 0: not between 1 and 100"),
        ("-i a -o b -s 0", "-s 0: not between 1 and 4611686018427387904"),
        ("-i a -o b --verbose 3", "--verbose 3: not between 0 and 2"),
        (
            "-i a -o b --checkpoint_timesteps 5",
            "--checkpoint_file must be used together with --checkpoint_interval or --checkpoint_timesteps",
        ),
    ],
)
def test_wrong_command_lines_are_rejected(arguments, words):
    with pytest.raises(CaseError) as caught:
        parse(arguments.split())
    assert str(caught.value) == words


def test_status_is_not_zero_and_usage_is_shown(tmp_path, capsys):
    assert main(["-i", "a"], "kspaceFirstOrder-OMP", "cpu") == 1
    text = capsys.readouterr().err
    assert text.startswith("kspaceFirstOrder-OMP: option -o is missing\n") and "Usage:" in text
    assert main(["-i", str(tmp_path / "a.h5"), "-o", "b"], "kspaceFirstOrder-OMP", "cpu") == 1
    assert capsys.readouterr().err == f"kspaceFirstOrder-OMP: {tmp_path / 'a.h5'}: file: does not exist\n"
    path = write_input(tmp_path / "in.h5", SHAPE, **P0)
    assert main(["-i", str(path), "-o", str(tmp_path / "no" / "out.h5")], "kspaceFirstOrder-OMP", "cpu") == 1
    assert f"out.h5: there is no folder {tmp_path / 'no'}" in capsys.readouterr().err
    assert main(["-i", str(path), "-o", str(tmp_path)], "kspaceFirstOrder-OMP", "cpu") == 1
    assert "file: cannot be written" in capsys.readouterr().err
    assert main(["-i", str(tmp_path), "-o", str(tmp_path / "o.h5")], "kspaceFirstOrder-OMP", "cpu") == 1
    assert capsys.readouterr().err.endswith("file: is a folder\n")
    assert main(["-i", str(path), "-o", str(tmp_path / "o.h5"), "-s", "41"], "kspaceFirstOrder-OMP", "cpu") == 1
    assert "the first recorded step, 41, is not between 1 and 40" in capsys.readouterr().err


@pytest.mark.parametrize("damage", ["type", "grid", "input", "truncated", "output"])
def test_wrong_checkpoint_is_rejected(damage, tmp_path, capsys):
    path = write_input(tmp_path / "in.h5", SHAPE, **P0)
    state, out = tmp_path / "state.h5", tmp_path / "out.h5"
    flags = ["-i", str(path), "-o", str(out), "--checkpoint_file", str(state), "--checkpoint_timesteps", "10"]
    assert main(flags, "kspaceFirstOrder-OMP", "cpu") == 0
    if damage == "type":
        state.write_bytes(path.read_bytes())
        words = "attribute file_type: is 'input', not 'checkpoint'"
    elif damage == "grid":
        with h5py.File(state, "r+") as file:
            file["Nx"][...] = 23
        words = "Nx: is 23, but 24 in"
    elif damage == "input":
        write_input(path, SHAPE, **{**P0, "p0_source_input": 2 * P0["p0_source_input"]})
        words = f"the checkpoint is of another simulation than {path}"
    elif damage == "truncated":
        state.write_bytes(state.read_bytes()[:-2000])
        words = "file: cannot be read as HDF5"
    else:
        out.unlink()
        words = "out.h5: file: cannot be re-opened"
    assert main(flags, "kspaceFirstOrder-OMP", "cpu") == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("link", [None, "symbolic", "hard"])
@pytest.mark.parametrize("flag", ["-o", "--checkpoint_file"])
def test_input_is_not_written_over(flag, link, tmp_path, capsys):
    path = write_input(tmp_path / "in.h5", SHAPE, **P0)
    other = path if link is None else tmp_path / "other.h5"
    if link == "symbolic":
        other.symlink_to(path)
    elif link == "hard":
        other.hardlink_to(path)
    before = path.read_bytes()
    flags = {"-o": tmp_path / "out.h5", "--checkpoint_file": tmp_path / "state.h5", "--checkpoint_timesteps": 10}
    line = ["-i", str(path), *(str(part) for pair in (flags | {flag: other}).items() for part in pair)]
    assert main(line, "kspaceFirstOrder-OMP", "cpu") == 1
    assert capsys.readouterr().err == f"kspaceFirstOrder-OMP: -i {path} and {flag} {other} are the same file\n"
    assert path.read_bytes() == before and not (tmp_path / "out.h5").exists()


def test_output_replaces_no_file_of_another_kind(tmp_path, capsys):
    path, other = write_input(tmp_path / "in.h5", SHAPE, **P0), write_input(tmp_path / "other.h5", SHAPE, **P0)
    notes, empty = tmp_path / "notes.txt", tmp_path / "empty.h5"
    notes.write_text("mine")
    empty.touch()
    before = other.read_bytes()
    for out, words in (
        (notes, "notes.txt: file: exists and is not an HDF5 file; give the output another name\n"),
        (other, "other.h5: file: is a file of type input; give the output another name\n"),
    ):
        assert main(["-i", str(path), "-o", str(out)], "kspaceFirstOrder-OMP", "cpu") == 1
        assert capsys.readouterr().err.endswith(words)
    assert (notes.read_text(), other.read_bytes()) == ("mine", before)
    for _ in range(2):  # an empty file, then an output
        assert main(["-i", str(path), "-o", str(empty)], "kspaceFirstOrder-OMP", "cpu") == 0


def test_output_and_checkpoint_are_two_files(tmp_path, capsys):
    path, out = write_input(tmp_path / "in.h5", SHAPE, **P0), str(tmp_path / "out.h5")
    flags = ["-i", str(path), "-o", out, "--checkpoint_file", out, "--checkpoint_timesteps", "10"]
    assert main(flags, "kspaceFirstOrder-OMP", "cpu") == 1
    assert f"-o {out} and --checkpoint_file {out} are the same file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("first", "then", "words"),
    [
        ("-p", "-u", "is 'p from step 1 to 40', but now 'u from step 1 to 40' is requested"),
        ("-p", "-p --p_max", "is 'p from step 1 to 40', but now 'p p_max from step 1 to 40' is requested"),
        ("--p_rms", "--p_rms -s 5", "is 'p_rms from step 1 to 40', but now 'p_rms from step 5 to 40' is requested"),
        ("-p -s 5", "-p", "is 'p from step 5 to 40', but now 'p from step 1 to 40' is requested"),
        ("-p", "-p --benchmark 12", "is 'p from step 1 to 40', but now 'p from step 1 to 12' is requested"),
    ],
)
def test_later_run_segments_record_what_the_first_did(first, then, words, tmp_path, capsys):
    """Else rows of series would be missing, and sums would contain steps that were not requested."""
    path, state, out = write_input(tmp_path / "in.h5", SHAPE, **P0), tmp_path / "state.h5", tmp_path / "out.h5"
    flags = ["-i", str(path), "-o", str(out), "--checkpoint_file", str(state), "--checkpoint_timesteps", "15"]
    assert main([*flags, *first.split()], "kspaceFirstOrder-OMP", "cpu") == 0
    before = out.read_bytes()
    assert main([*flags, *then.split()], "kspaceFirstOrder-OMP", "cpu") == 1
    assert capsys.readouterr().err == f"kspaceFirstOrder-OMP: {state}: attribute records: {words}\n"
    assert out.read_bytes() == before
    with h5py.File(state, "r+") as file:  # as another program leaves it, which does not say what it recorded
        del file.attrs["records"]
    assert main([*flags, *first.split()], "kspaceFirstOrder-OMP", "cpu") == 0
