# SPDX-License-Identifier: BSD-3-Clause
"""A small case of ultrasound for tests: an arc that sends a tone in water."""

from __future__ import annotations

from pathlib import Path

BASIC = """solver = "ultrasound"
[grid]
shape = [48, 40]
spacing = "0.5 mm"
cfl = 0.3
steps = 60
[layer]
points = 6
[medium]
sound_speed = "1500 m/s"
density = "1000 kg/m^3"
[[source]]
kind = "arc"
position = ["-8 mm", "0 mm"]
focus = ["2 mm", "0 mm"]
radius = "10 mm"
diameter = "8 mm"
frequency = "500 kHz"
amplitude = "60 kPa"
[record]
points = [["0 mm", "1 mm"]]
frequencies = ["500 kHz"]
periods = 1
maps = ["p_max_all"]
"""


def case(folder: Path, text: str = BASIC) -> Path:
    """Return the case file that was written."""
    path = folder / "case.toml"
    path.write_text(text)
    return path
