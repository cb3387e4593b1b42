# SPDX-License-Identifier: BSD-3-Clause
"""`seiche check --picture`: a picture of what a case computes, drawn before anything runs."""

from __future__ import annotations

from pathlib import Path

from seiche.case.kinds import kind_of
from seiche.case.output_targets import FILE_KINDS, check_replaceable_file
from seiche.case.source import CaseFile
from seiche.case.tables import PICTURES
from seiche.errors import CaseError


def draw_case(source: CaseFile, path: Path) -> Path:
    """Draw the geometry or the media of a case with its openings, sources and sensors to `path`, and return it.

    An earlier picture is replaced. Raises CaseError for an invalid case, a file that is no picture, or a kind of case
    without pictures, and FormatError for an invalid file.
    """
    from seiche.report.case_figure import case_figure

    if path.suffix.lower() not in PICTURES:
        raise CaseError(f"--picture {path}: has no known suffix; expected {', '.join(PICTURES)}")
    check_replaceable_file("--picture", path, FILE_KINDS[path.suffix.lower()])
    kind = kind_of(source)
    if kind.picture is None:
        raise CaseError(f"--picture: cases of {kind.name} have no picture")
    case_figure(path, kind.picture(source))
    return path
