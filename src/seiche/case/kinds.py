# SPDX-License-Identifier: BSD-3-Clause
"""The table of all kinds of case. A new one is a module and one line here (docs/howto/add-a-solver.md)."""

from __future__ import annotations

from importlib import import_module

from seiche.case.kind import Kind
from seiche.case.messages import nearest
from seiche.case.quantities import shorten
from seiche.case.source import CaseFile
from seiche.errors import CaseError

#: Where the `Kind` of each value of `solver` is, imported when it is needed.
KINDS = {
    "flow": "seiche.case.flow.kind:FLOW",
    "blood": "seiche.case.blood.kind:BLOOD",
    "ultrasound": "seiche.case.ultrasound.kind:ULTRASOUND",
    "waves": "seiche.case.waves.kind:WAVES",
}


def kind_named(name: str) -> Kind:
    """Return the kind `name` of `KINDS`."""
    module, _, attribute = KINDS[name].partition(":")
    found: Kind = getattr(import_module(module), attribute)
    return found


def kind_of(source: CaseFile) -> Kind:
    """Return the kind of a case.

    Raises:
        CaseError: its `solver` is missing or unknown.
    """
    name = source.solver
    if isinstance(name, str) and name in KINDS:
        return kind_named(name)
    quoted = [f'"{each}"' for each in KINDS]
    expected = f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    if "solver" not in source.tables:
        raise CaseError(f"{source.path}: solver: is missing; needed: {expected}")
    hint = nearest(name, list(KINDS), listing=False)
    raise CaseError(f"{source.path}: solver: {shorten(name)} is not known; expected {expected}{hint}")
