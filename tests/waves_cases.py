# SPDX-License-Identifier: BSD-3-Clause
"""The mesh and the first material of small cases of waves in a plane."""

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
