# SPDX-License-Identifier: BSD-3-Clause
"""Full-waveform inversion with SciPy: recover a fast and a slow body inside a ring of receivers from acoustic waves.

    python examples/inversion-2d/invert.py [ITERATIONS] [FOLDER]

There are four sources, one on each side, and 22 receivers around them. Data are computed with the true medium; the
inversion starts from a uniform one and minimises the misfit of the pressures with L-BFGS-B, with gradients by the exact
adjoint of the discrete scheme. The script takes one or two minutes on two cores, and writes inversion.png and
inversion.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from seiche.report.style import DOUBLE_COLUMN, color_bar, new_figure, paper_style, save
from seiche.waves import Brick, Forest, Material, Mesh, PointSource, Ricker
from seiche.waves.adjoint import Experiment

WIDTH, HEIGHT = 12, 10  # km, elements of 1 km
SPEED, DENSITY = 2.0, 2.0  # km/s, g/cm^3


def experiments(mesh: Mesh) -> list[Experiment]:
    """Return a shot for each source."""
    low, right, top = 0.5, WIDTH - 0.5, HEIGHT - 0.5
    across, up = np.linspace(low, right, 7), np.linspace(low, top, 6)[1:-1]
    receivers = [(x, y) for y in (low, top) for x in across] + [(x, y) for x in (low, right) for y in up]
    positions = [(low, 4.7), (right, 5.4), (5.6, low), (6.5, top)]
    pulse, options = Ricker(0.35, 3.5), {"nodes": 4, "boundaries": "absorbing", "device": "cpu", "threads": 1}
    return [
        Experiment(mesh, 0.08, 150, [PointSource(position, pulse, volume=1.0)], receivers, ("p",), options)
        for position in positions
    ]


def true_speed(mesh: Mesh) -> np.ndarray:
    """Return the true speeds, (elements,)."""
    x, y = (mesh.lower + mesh.sizes / 2).T
    fast = np.exp(-((x - 4.5) ** 2 + (y - 6.5) ** 2) / 2 / 1.3**2)
    slow = np.exp(-((x - 7.5) ** 2 + (y - 3.5) ** 2) / 2 / 1.3**2)
    return SPEED * (1 + 0.08 * fast - 0.08 * slow)


def main(iterations: int = 12, folder: Path = Path(__file__).parent / "out") -> dict[str, object]:
    """Invert, draw and store; return the stored values."""
    mesh = Mesh.of_forest(Forest.uniform(Brick((WIDTH, HEIGHT), (False, False)), 0))
    shots, truth = experiments(mesh), true_speed(mesh)

    def medium(cp: np.ndarray) -> Material:
        return Material(np.full(mesh.count, DENSITY), cp, np.zeros(mesh.count))

    data = [shot.simulate(medium(truth)) for shot in shots]

    def misfit(relative: np.ndarray) -> tuple[float, np.ndarray]:
        """Return misfit and gradient relative to the initial misfit, for speeds SPEED (1 + relative)."""
        gradients = [shot.gradient(medium(SPEED * (1 + relative)), d) for shot, d in zip(shots, data, strict=True)]
        return sum(g.misfit for g in gradients) / scale, SPEED * np.sum([g.cp for g in gradients], axis=0) / scale

    start = np.zeros(mesh.count)
    scale = sum(shot.misfit(medium(SPEED * (1 + start)), d) for shot, d in zip(shots, data, strict=True))
    history = [1.0]

    def note(relative: np.ndarray) -> None:
        history.append(last[0])
        print(f"iteration {len(history) - 1}: misfit {history[-1]:.3e} of the initial one", flush=True)

    last = [1.0]

    def counted(relative: np.ndarray) -> tuple[float, np.ndarray]:
        last[0], gradient = misfit(relative)
        return last[0], gradient

    minimum = minimize(
        counted,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-0.2, 0.2)] * mesh.count,
        callback=note,
        options={"maxiter": iterations, "maxcor": 12},
    )
    speed = SPEED * (1 + minimum.x)
    error = float(np.linalg.norm(speed - truth) / np.linalg.norm(truth - SPEED))
    correlation = float(np.corrcoef(speed - SPEED, truth - SPEED)[0, 1])
    result = {"misfit": history, "error_of_the_anomaly": error, "correlation": correlation}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "inversion.json").write_text(json.dumps(result, indent=1) + "\n")
    draw(folder / "inversion.png", mesh, truth, speed, history)
    print(f"misfit {history[-1]:.2e}, anomaly error {error:.2f}, correlation {correlation:.2f}; files in {folder}")
    return result


def draw(path: Path, mesh: Mesh, truth: np.ndarray, speed: np.ndarray, history: list[float]) -> None:
    """Draw both media and the misfit."""
    column, row = np.floor(mesh.lower).astype(int).T
    with paper_style():
        figure = new_figure(DOUBLE_COLUMN, 2.4)
        panels = figure.subplots(1, 3)
        for axes, values, title in zip(panels, (truth, speed), ("true", "found"), strict=False):
            grid = np.empty((HEIGHT, WIDTH))
            grid[row, column] = values
            image = axes.imshow(
                grid, origin="lower", extent=(0, WIDTH, 0, HEIGHT), cmap="RdBu_r", vmin=0.92 * SPEED, vmax=1.08 * SPEED
            )
            axes.set_title(title)
            axes.set_xlabel("x (km)")
        color_bar(panels[1], image, "speed (km/s)")
        panels[2].semilogy(history, "o-", markersize=3)
        panels[2].set_xlabel("iteration")
        panels[2].set_title("misfit")
        save(figure, path, path.name)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(int(arguments[0]) if arguments else 12, *(Path(name) for name in arguments[1:2]))
