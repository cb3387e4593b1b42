# SPDX-License-Identifier: BSD-3-Clause
"""What a release must state alike in several files: its version, its date and its dependencies."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import seiche

ROOT = Path(__file__).parents[2]
#: Packages with another name in conda-forge.
CONDA_NAMES = {"libigl": "igl", "matplotlib": "matplotlib-base"}


def found(pattern: str, *names: str) -> tuple[str, ...]:
    """Return the groups of the first match of a pattern in a file."""
    match = re.search(pattern, ROOT.joinpath(*names).read_text(), re.MULTILINE)
    assert match is not None, f"{'/'.join(names)}: no {pattern}"
    return match.groups()


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_all_files_have_the_same_version_and_date():
    version, date = found(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", "CHANGELOG.md")
    assert project()["version"] == seiche.__version__ == version
    assert found(r"^version: (\S+)$", "CITATION.cff") == (version,)
    assert found(r'^date-released: "(\S+)"$', "CITATION.cff") == (date,)
    assert found(r'^\{% set version = "(\S+)" %\}$', "packaging", "conda", "meta.yaml") == (version,)


def test_the_conda_recipe_has_the_dependencies_of_the_package():
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in project()["dependencies"]}
    (run,) = found(r"^  run:\n((?:    - .*\n)+)", "packaging", "conda", "meta.yaml")
    assert set(re.findall(r"- ([\w-]+)", run)) == {CONDA_NAMES.get(name, name) for name in names} | {"python"}


def test_the_container_recipes_install_an_extra_of_the_package():
    (docker,) = found(r"^ARG EXTRA=(\w+)$", "packaging", "Dockerfile")
    (apptainer,) = found(r"^    extra=(\w+)$", "packaging", "seiche.def")
    assert docker == apptainer and docker in project()["optional-dependencies"]
