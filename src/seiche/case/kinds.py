# SPDX-License-Identifier: BSD-3-Clause
"""Table of all kinds of case. A new kind is one module and one line (docs/howto/add-a-solver.md)."""

from __future__ import annotations

from importlib import import_module

from seiche.case.kind import Kind
from seiche.case.messages import nearest
from seiche.case.quantities import shorten
from seiche.case.source import CaseFile
from seiche.errors import CaseError
from seiche.set_up import set_up_stage

#: Module and name of the `Kind` for each value of `solver`; the module is imported when it is first used.
KINDS = {
    "flow": "seiche.case.flow.kind:FLOW",
    "blood": "seiche.case.blood.kind:BLOOD",
    "ultrasound": "seiche.case.ultrasound.kind:ULTRASOUND",
    "waves": "seiche.case.waves.kind:WAVES",
}


def kind_named(name: str) -> Kind:
    """Return the kind with a name in `KINDS`."""
    module, _, attribute = KINDS[name].partition(":")
    with set_up_stage("import"):
        kind: Kind = getattr(import_module(module), attribute)
    return kind


def kind_of(source: CaseFile) -> Kind:
    """Return the kind of a case; CaseError if its `solver` is missing or unknown."""
    name = source.solver
    if isinstance(name, str) and name in KINDS:
        return kind_named(name)
    *quoted, last = [f'"{known}"' for known in KINDS]
    expected = f"{', '.join(quoted)} or {last}"
    if "solver" not in source.tables:
        raise CaseError(f"{source.path}: solver: is missing; expected {expected}")
    hint = nearest(name, list(KINDS), listing=False)
    raise CaseError(f"{source.path}: solver: {shorten(name)} is not known; expected {expected}{hint}")
