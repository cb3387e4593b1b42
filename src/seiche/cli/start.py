# SPDX-License-Identifier: BSD-3-Clause
"""Commands for new cases: `seiche new` and `seiche schema`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from seiche.cli.options import world_of_command
from seiche.errors import CaseError


def schema(
    kind: Annotated[str | None, typer.Argument(help="flow, blood, ultrasound or waves; all by default.")] = None,
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write.")] = None,
) -> None:
    """Print the JSON schema of case files; editors use it to complete and check keys."""
    if world_of_command(single_rank=True).rank != 0:
        return
    from seiche.case.json_schema import schema_text, write_schema

    if output is None:
        print(schema_text(kind), end="")
    else:
        write_schema(output, kind)
        print(f"seiche: wrote {output}")


def new(
    kind: Annotated[str | None, typer.Argument(help="flow, blood, ultrasound or waves.")] = None,
    name: Annotated[
        str | None, typer.Argument(help="Folder to create; by default named after the kind or the example.")
    ] = None,
    *,
    like: Annotated[str | None, typer.Option(metavar="EXAMPLE", help="Copy this example with its data.")] = None,
    python: Annotated[bool, typer.Option("--python", help="Also write a script that runs the case.")] = False,
    list_only: Annotated[bool, typer.Option("--list", help="List the examples and exit.")] = False,
) -> None:
    """Create a folder with a commented case file that is ready to run."""
    if world_of_command(single_rank=True).rank != 0:
        return
    from seiche.case.new import list_examples, new_case

    if list_only:
        print("\n".join(list_examples()))
        return
    if kind is None:
        raise CaseError("new: the kind is missing; expected flow, blood, ultrasound or waves, or --list")
    files = new_case(kind, name, like=like, script=python)
    print(f"seiche: wrote {', '.join(map(str, files))}")
    case = next((path for path in files if path.name == "case.toml"), None)
    if case is not None:
        print(f"seiche: next: seiche check {quote(str(case))}; seiche run {quote(str(case))}")
