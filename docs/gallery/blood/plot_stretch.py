# SPDX-License-Identifier: BSD-3-Clause
"""
A stretched red cell
====================

Optical tweezers pull a red cell at both ends. Mills et al. (2004) measured its axial and transverse diameters. The
membrane of the default red cell is in equilibrium with the same forces, without any flow.
"""

# %%
# Equilibria
# ----------
# The force acts on the five per cent of the vertices at each end. Lengths are in micrometres and forces in
# piconewtons.

import matplotlib.pyplot as plt
import numpy as np

from seiche.backend import open_backend
from seiche.cells import Cells, equilibrium, red_cell
from seiche.cells.loop import limit_points

#: Force (pN), axial diameter and its error bar, transverse diameter and its error bar (um).
measured = np.array(
    [
        (0.0, 7.57, 0.65, 7.57, 0.65),
        (38.3, 11.15, 1.15, 5.44, 0.60),
        (67.8, 12.87, 1.08, 4.72, 0.72),
        (108.9, 14.42, 1.46, 4.58, 0.74),
        (151.0, 15.59, 1.29, 4.37, 0.60),
    ]
)
kind = red_cell(162)
cells = Cells(open_backend("cpu"), [kind], [np.zeros((1, 3))])
along_x = np.argsort(cells.vertices()[0, :, 0])
count = round(0.05 * len(along_x))
shapes = []
for force in measured[:, 0]:
    loads = np.zeros((len(along_x), 3))
    loads[along_x[:count], 0], loads[along_x[-count:], 0] = -force / count, force / count
    vertices = equilibrium(cells, loads, tolerance=1e-3).vertices
    shapes.append(limit_points(kind.mesh.faces, vertices))
diameters = np.array([np.ptp(shape, axis=0)[:2] for shape in shapes])

# %%
# Diameters
# ---------
# All of them are within the error bars of the measurement.

deviation = np.abs(diameters - measured[:, [1, 3]]) / measured[:, [2, 4]]
print(f"largest deviation: {deviation.max():.2f} error bars")
assert deviation.max() < 1

figure = plt.figure(figsize=(8, 3.2), layout="constrained")
solid = figure.add_subplot(1, 2, 1, projection="3d")
for offset, shape in zip((6, -6), (shapes[0], shapes[-1]), strict=True):
    solid.plot_trisurf(
        *(shape + np.array([0.0, offset, 0.0])).T, triangles=kind.mesh.faces, color="tab:red", linewidth=0.1
    )
solid.set(xlabel="x (µm)", ylabel="y (µm)", zlim=(-5, 5), title="0 and 151 pN")
solid.set_box_aspect((16, 20, 10))
axes = figure.add_subplot(1, 2, 2)
for column, label in enumerate(("axial", "transverse")):
    bars = measured[:, 1 + 2 * column : 3 + 2 * column]
    axes.errorbar(measured[:, 0], bars[:, 0], bars[:, 1], fmt="o", color=f"C{column}", label=f"{label}, measured")
    axes.plot(measured[:, 0], diameters[:, column], color=f"C{column}", label="Seiche")
axes.set(xlabel="force (pN)", ylabel="diameter (µm)")
axes.legend()
plt.show()
