# SPDX-License-Identifier: BSD-3-Clause
"""The page docs/reference/waves-case.md: `python -m seiche.case.waves.document > docs/reference/waves-case.md`."""

from __future__ import annotations

from seiche.case.document import sections
from seiche.case.waves.schema import WaveCase

_INTRODUCTION = """# The case file of waves

A TOML file as [for flow](case.md): physical values are strings with a unit, and plain numbers are dimensionless. A key
that is not listed here is an error. Any key can be changed with `--set`. See
[an example](../howto/simulate-waves.md#from-a-case-file). Boxes have two or three axes; the last one points upwards.

A run writes HDF5 files: seismograms (`samples` of shape receivers, times, fields; `time`, `name`, `position`, `field`),
snapshots (`velocity`, `pressure`, `time`) and peak velocities (`position`, `velocity`, `horizontal_velocity`). SAC
files have the position of the station in USER0 to USER2. A run continued from a checkpoint (`--restart`) writes the
seismograms and peak velocities of the whole run, under the same names.

This page is generated from the schema by `python -m seiche.case.waves.document`.
"""


def page() -> str:
    """Return the page as Markdown."""
    return sections(WaveCase, _INTRODUCTION)


if __name__ == "__main__":
    print(page(), end="")
