# SPDX-License-Identifier: BSD-3-Clause
"""The page docs/reference/waves-case.md: `python -m seiche.case.waves.document > docs/reference/waves-case.md`."""

from __future__ import annotations

from seiche.case.document import sections
from seiche.case.waves.schema import WaveCase

_INTRODUCTION = """# The case file of waves

A TOML file like [that of flow](case.md): every physical value is a string with a unit, plain numbers are dimensionless,
a key that is not listed here is an error, any key can be changed with `--set`. There is
[an example](../howto/simulate-waves.md#from-a-case-file). Boxes have two or three axes; the last one points upwards.

Files that a run writes: seismograms (`samples` of shape receivers, times, fields; `time`, `name`, `position`, `field`),
snapshots (`velocity`, `pressure`, `time`), peak velocities (`position`, `velocity`, `horizontal_velocity`) as HDF5; SAC
files have the place of the station in USER0 to USER2. A run that continues
from a checkpoint (`--restart`) completes seismograms and peak velocities of the whole run under the same names.

This page is made from the schema by `python -m seiche.case.waves.document`.
"""


def page() -> str:
    """Return the page as Markdown."""
    return sections(WaveCase, _INTRODUCTION)


if __name__ == "__main__":
    print(page(), end="")
