# SPDX-License-Identifier: BSD-3-Clause
"""Command `seiche calibrate`: Windkessel outlets from a flow split and pressures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seiche.case.quantities import parse_quantity
from seiche.cli.options import world_of_command
from seiche.errors import CaseError


def calibrate(
    case: Annotated[Path, typer.Argument(help="Case file (TOML) with one pulsatile velocity inlet.", metavar="CASE")],
    *,
    split: Annotated[str, typer.Option(metavar="NAME=F,...", help="Fraction of the flow through each outlet; sum 1.")],
    mean: Annotated[str, typer.Option(metavar="P", help='Mean pressure at the inlet, such as "93 mmHg".')],
    systolic: Annotated[str, typer.Option(metavar="P", help="Systolic pressure at the inlet.")],
    diastolic: Annotated[str, typer.Option(metavar="P", help="Diastolic pressure at the inlet.")],
    distal: Annotated[str, typer.Option(metavar="P", help="Pressure downstream of the distal resistances.")] = "0 mmHg",
    share: Annotated[float, typer.Option(help="Fraction of the resistance before the compliance.")] = 0.056,
    runs: Annotated[int, typer.Option(min=0, max=50, help="Maximum number of runs for refinement.")] = 4,
    cycles: Annotated[int, typer.Option(min=2, max=1000, help="Periods of each run; the last one is used.")] = 5,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Case file to write; NAME-calibrated.toml by default."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")] = False,
) -> None:
    """Write a case with Windkessel outlets that give a flow split and the pressures at the inlet."""
    if world_of_command(single_rank=True).rank != 0:
        return
    from seiche.case.flow.calibration import Targets
    from seiche.case.flow.calibration import calibrate as calibrate_case

    pressures = {"mean": mean, "systolic": systolic, "diastolic": diastolic, "distal": distal}
    values = {name: _pressure(name, text) for name, text in pressures.items()}
    targets = Targets(split=_split(split), share=share, **values)
    output_path = output or case.with_name(f"{case.stem}-calibrated.toml")
    lines = calibrate_case(case, targets, output=output_path, runs=runs, cycles=cycles, force=force)
    print("\n".join(lines))


def _pressure(name: str, text: str) -> float:
    try:
        return parse_quantity(text, dimension="pressure")
    except ValueError as error:
        raise CaseError(f"--{name}: {error}") from None


def _split(text: str) -> dict[str, float]:
    result = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        try:
            result[name.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise CaseError(f'--split: "{part}" is not a name and a share; expected outlet1=0.6,outlet2=0.4')
    return result
