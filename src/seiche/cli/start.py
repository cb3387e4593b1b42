# SPDX-License-Identifier: BSD-3-Clause
"""Commands for those who write a case: `seiche schema`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from seiche.cli.options import world_of_command


def schema(
    kind: Annotated[str | None, typer.Argument(help="flow, blood, ultrasound or waves; all by default.")] = None,
    *,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write.")] = None,
) -> None:
    """Print the JSON schema of case files, with which editors complete and check keys."""
    if world_of_command(alone=True).rank != 0:
        return
    from seiche.case.json_schema import schema_text, write_schema

    if output is None:
        print(schema_text(kind), end="")
    else:
        write_schema(output, kind)
        print(f"seiche: wrote {output}")
