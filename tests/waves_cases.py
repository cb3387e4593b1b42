# SPDX-License-Identifier: BSD-3-Clause
"""Meshes, materials and sources of small cases of waves."""

#: A block of 20 m by 20 m by 10 m below a free surface, its soil, and a force and a receiver in it.
BLOCK = """
solver = "waves"
[mesh]
lower = ["0 m", "0 m", "0 m"]
upper = ["20 m", "20 m", "10 m"]
nodes = 3
"""
SOIL = """
[[material]]
name = "soil"
density = "1700 kg/m^3"
cp = "1500 m/s"
cs = "800 m/s"
"""
FORCE = """
[boundary]
upper = ["absorbing", "absorbing", "free"]
[[source]]
position = ["10 m", "9 m", "4 m"]
force = ["0 N", "1 N", "1 N"]
time = { kind = "gaussian", sigma = "1 ms", delay = "2 ms" }
[[receiver]]
name = "A"
position = ["12 m", "10 m", "10 m"]
"""
ROCK = """
solver = "waves"
[mesh]
lower = ["0 m", "0 m"]
upper = ["40 m", "30 m"]
trees = [4, 3]
nodes = 3
size = "10 m"
[[material]]
name = "rock"
density = "2000 kg/m^3"
cp = "2000 m/s"
cs = "1000 m/s"
"""
