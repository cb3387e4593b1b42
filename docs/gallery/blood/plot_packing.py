# SPDX-License-Identifier: BSD-3-Clause
"""
Packing red cells
=================

A simulation of blood starts from cells that do not overlap. A packing fills a box or a vessel with cells of random
directions up to a hematocrit, the share of the volume that is inside cells.
"""

# %%
# A periodic box and a tube
# -------------------------
# Cells never cross the wall of the tube.

import matplotlib.pyplot as plt
import numpy as np

from seiche.cells import Box, Tube, pack, red_cell

cell = red_cell(162)
packings = {
    "box of 20 um, hematocrit 0.4": (pack(Box((20.0, 20.0, 20.0)), [cell.mesh], 0.4, seed=1), 20.0**3),
    "tube of 20 um, hematocrit 0.3": (pack(Tube(10.0, 40.0), [cell.mesh], 0.3, seed=1), np.pi * 10.0**2 * 40.0),
}

# %%
# The number of cells
# -------------------
# It follows from the hematocrit, the volume of the vessel and that of a cell.

faces, vertices = cell.mesh.faces, cell.mesh.vertices
a, b, c = (vertices[faces[:, k]] for k in range(3))
volume = np.einsum("ij,ij->", a, np.cross(b, c)) / 6
figure = plt.figure(figsize=(8, 3.6), layout="constrained")
for column, (title, (packing, space)) in enumerate(packings.items()):
    number = len(packing.centers)
    print(f"{title}: {number} cells, {number * volume / space:.4f} by their volumes, {packing.hematocrit:.4f} reported")
    assert abs(number * volume / space / packing.hematocrit - 1) < 0.01
    axes = figure.add_subplot(1, 2, column + 1, projection="3d")
    for center, rotation in zip(packing.centers, packing.rotations, strict=True):
        placed = vertices @ rotation.T + center
        axes.plot_trisurf(*placed.T, triangles=faces, color="tab:red", linewidth=0)
    axes.set(title=title)
    axes.set_box_aspect((1, 1, 1) if column == 0 else (2, 1, 1))
plt.show()
