# SPDX-License-Identifier: BSD-3-Clause
"""The JSON schema of case files accepts every example, and rejects what the tables reject."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from seiche.case.json_schema import schema_of
from seiche.case.kinds import KINDS
from seiche.cli import main
from seiche.errors import CaseError

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(ROOT.glob("examples/*/*.toml"))


def errors(case: dict[str, Any], name: str | None) -> list[str]:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(schema_of(name))
    validator.check_schema(validator.schema)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(case)]


@pytest.mark.parametrize("path", EXAMPLES, ids=[f"{path.parent.name}/{path.name}" for path in EXAMPLES])
def test_every_example_fits_the_schema_of_its_kind_and_of_all(path: Path) -> None:
    case = tomllib.loads(path.read_text())
    assert errors(case, case["solver"]) == []
    assert errors(case, None) == []
    others = [kind for kind in KINDS if kind != case["solver"]]
    assert all(errors(case, kind) for kind in others)


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("fluid", "viscosity", 0.001),  # no unit
        ("fluid", "viscosity", "1"),
        ("fluid", "vicsosity", "1 mPa s"),
        ("lattice", "collision", "srt"),
        ("time", "steps", "many"),
        ("output", "record_every", -1),
    ],
)
def test_the_schema_rejects_what_a_case_file_must_not_contain(table: str, key: str, value: object) -> None:
    case = tomllib.loads((ROOT / "examples" / "tube" / "case.toml").read_text())
    assert errors(case, "flow") == []
    case[table][key] = value
    (message,) = errors(case, "flow")
    assert message.startswith(f"$.{table}")


def test_keys_have_units_choices_and_defaults_for_an_editor() -> None:
    fluid, lattice = (schema_of("flow")["$defs"][name]["properties"] for name in ("Fluid", "Lattice"))
    assert fluid["density"]["default"] == "1060 kg/m^3" and fluid["density"]["type"] == "string"
    assert fluid["viscosity"]["description"].endswith('such as "4 mPa s"')
    assert lattice["collision"]["enum"] == ["trt", "bgk", "mrt", "regularised"]
    rule = schema_of("waves")["$defs"]["MeshTable"]["properties"]["flux"]
    assert rule["enum"] == ["upwind", "central"] and rule["default"] == "upwind"
    text = json.dumps(schema_of())
    assert '"null"' not in text and '"gt"' not in text


def test_the_open_sets_of_sources_are_alternatives() -> None:
    made = schema_of("ultrasound")
    one, several = made["properties"]["source"]["anyOf"]
    assert several["items"] == one
    tables = [made["$defs"][table["$ref"].rpartition("/")[2]] for table in one["oneOf"]]
    kinds = {table["properties"]["kind"]["const"] for table in tables}
    assert {"initial-ball", "bowl", "arc"} <= kinds


def test_the_command_prints_or_writes_the_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "flow"]) == 0
    assert json.loads(capsys.readouterr().out) == schema_of("flow")
    path = tmp_path / "seiche.json"
    assert main(["schema", "-o", str(path)]) == 0
    assert json.loads(path.read_text()) == schema_of()
    assert str(path) in capsys.readouterr().out


def test_an_unknown_kind_gives_a_one_line_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CaseError, match="expected flow, blood, ultrasound, waves"):
        schema_of("flwo")
    assert main(["schema", "flwo"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_schema_does_not_replace_a_file_of_something_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "case.toml"
    path.write_text('solver = "flow"\n')
    assert main(["schema", "flow", "--output", str(path)]) == 2
    assert "case.toml" in capsys.readouterr().err
    assert path.read_text() == 'solver = "flow"\n'


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_has_a_description(kind: str) -> None:
    schema = schema_of(kind)
    tables = [schema, *schema["$defs"].values()]
    properties = [(name, item) for table in tables for name, item in table.get("properties", {}).items()]
    assert len(properties) > 100
    assert [name for name, item in properties if not item.get("description")] == []
