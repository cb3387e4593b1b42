# SPDX-License-Identifier: BSD-3-Clause
"""Seiche beside other programs on the same work, in one command.

    python -m benchmarks.peers --device cpu --output peers.json

Each program that is installed runs in a process of its own. The processes take turns, so that a drift of the speed of
the machine concerns all of them. The table has the median, the least and the greatest figure of the rounds.

Programs: lbmpy (https://i10git.cs.fau.de/pycodegen/lbmpy), FluidX3D (a build of its benchmark, named by the variable
FLUIDX3D), k-wave-python with NumPy or CuPy and with the program k-Wave OMP or CUDA, and Devito. None is part of Seiche.
"""
