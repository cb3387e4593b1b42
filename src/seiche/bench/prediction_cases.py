# SPDX-License-Identifier: BSD-3-Clause
"""Small and large cases of the four solvers, for comparing predictions with measurements."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "flow": """
solver = "flow"
geometry = { spacing = "50 um", shape = { kind = "tube", radius = "1 mm", length = "6 mm" } }
fluid = { viscosity = "3.5 mPa s", density = "1050 kg/m^3" }
lattice = { tau = 0.8 }
time = { steps = 10000000 }
iolet = [
    { name = "inlet", kind = "velocity", velocity = "20 mm/s" },
    { name = "outlet", kind = "pressure", pressure = "0 mmHg" },
]
""",
    "blood": """
solver = "blood"
geometry = { spacing = "0.5 um", shape = { kind = "box", size = ["24 um", "24 um", "24 um"] } }
fluid = { density = "1025 kg/m^3", viscosity = "1.2 mPa s" }
lattice = { tau = 1.0, velocity_scale = "5 mm/s" }
time = { steps = 10000000 }
cells = [{ name = "red", shape = { kind = "biconcave", vertices = 162 } }]
packing = { hematocrit = 0.2, seed = 1 }
run = { precision = { compute = "float32" } }
""",
    "ultrasound": """
solver = "ultrasound"
[grid]
shape = [96, 64, 64]
spacing = "0.4 mm"
steps = 200000
[layer]
points = 10
[medium]
material = "water"
[[source]]
kind = "disc"
position = ["-8 mm", "0 mm", "0 mm"]
diameter = "8 mm"
focus = ["0 mm", "0 mm", "0 mm"]
frequency = "0.5 MHz"
amplitude = "100 kPa"
[record]
maps = ["p_max_all"]
""",
    "waves": """
solver = "waves"
mesh = { lower = ["0 m", "0 m", "0 m"], upper = ["80 m", "80 m", "80 m"], trees = [8, 8, 8], size = "10 m", nodes = 5 }
material = [{ name = "rock", density = "2500 kg/m^3", cp = "4000 m/s", cs = "2300 m/s" }]
time = { steps = 10000000 }
run = { precision = "float32" }
[[source]]
position = ["41 m", "41 m", "41 m"]
force = ["1e6 N", "0 N", "0 N"]
time = { kind = "ricker", frequency = "50 Hz" }
""",
}

#: Changes of the cases that make them large enough for a GPU.
LARGE: Final = {
    "flow": ("geometry.spacing=25 um",),
    "blood": ('geometry.shape.size=["32 um", "32 um", "32 um"]',),
    "ultrasound": ("grid.shape=[192, 192, 192]",),
    "waves": ("mesh.trees=[32, 32, 32]", 'mesh.upper=["320 m", "320 m", "320 m"]'),
}
