# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of the misfit against differences of it, the adjoint of a whole run, and the inversion that uses them."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from seiche.errors import CaseError
from seiche.waves import Brick, Forest, Material, Mesh, PointSource, Ricker
from seiche.waves.adjoint import Experiment, Gradient
from seiche.waves.revolve import stored_steps

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "inversion-2d" / "invert.py"


def experiment(medium: str, flux: str, boundaries: str, dim: int, device: str, force: float = 0.5) -> Experiment:
    """Return a shot; "mixed" media are elastic ones, some of them fluid, on a mesh with hanging faces."""
    forest = Forest.uniform(Brick((3, 2, 2)[:dim], (dim == 3, False, False)[:dim]), 0)
    if medium in ("mixed", "hanging"):
        forest = forest.refined(np.arange(len(forest)) == 2)
    mesh = Mesh.of_forest(forest)
    step, steps = (0.03, 50) if (mesh.child >= 0).any() else (0.05, 30)
    pulse = Ricker(0.5, 0.8)
    medium = {"mixed": "elastic", "hanging": "acoustic"}.get(medium, medium)
    kind = {"volume": 1.0} if medium == "acoustic" else {"moment": np.eye(dim).tolist()}
    return Experiment(
        mesh,
        step,
        steps,
        [
            PointSource((1.0, 1.1, 0.9)[:dim], pulse, force=(1.0, force, 0.2)[:dim]),
            PointSource((0.4, 0.7, 0.6)[:dim], pulse, **kind),
        ],
        [(2.2, 1.5, 1.2)[:dim], (1.7, 0.3, 0.2)[:dim]],
        ("p", "vy") if medium == "acoustic" else ("vx", "vy"),
        {"nodes": 3, "flux": flux, "boundaries": boundaries, "device": device, "threads": 1},
    )


CASES = [
    ("acoustic", "upwind", "absorbing", 2),
    ("acoustic", "upwind", "free", 2),
    ("acoustic", "central", "absorbing", 2),
    ("elastic", "upwind", "rigid", 2),
    ("elastic", "upwind", "free", 3),
    ("elastic", "central", "absorbing", 2),
    ("hanging", "upwind", "absorbing", 2),
    ("mixed", "upwind", "absorbing", 2),
    ("mixed", "upwind", "free", 3),
    ("mixed", "central", "absorbing", 2),
]


@pytest.mark.parametrize(("medium", "flux", "boundaries", "dim"), CASES)
def test_gradients_pass_the_taylor_test(medium: str, flux: str, boundaries: str, dim: int, device: str) -> None:
    """Central differences err by h^2, with nothing below: the gradient is that of the discrete misfit."""
    random = np.random.default_rng(2)
    shot = experiment(medium, flux, boundaries, dim, device)
    count = shot.mesh.count
    fluid = medium in ("acoustic", "hanging")
    shear = np.zeros(count) if fluid else 1 + 0.1 * random.random(count)
    shear[::3] *= medium != "mixed"
    base = np.stack([1 + 0.3 * random.random(count), 1.8 + 0.2 * random.random(count), shear])
    data = shot.simulate(Material(*(base * (1 + 0.1 * random.random(base.shape)))))
    result = shot.gradient(Material(*base), data)
    assert result.misfit == shot.misfit(Material(*base), data) > 0
    way = 0.1 * random.standard_normal(base.shape) * base
    slope = float((result.density * way[0] + result.cp * way[1] + result.cs * way[2]).sum())
    errors = []
    for h in (1e-1, 1e-2, 1e-3):
        after, before = (shot.misfit(Material(*(base + sign * h * way)), data) for sign in (1, -1))
        errors.append(abs((after - before) / (2 * h) / slope - 1))
    assert errors[1] / errors[0] == pytest.approx(1e-2, rel=0.1)
    assert errors[2] / errors[1] == pytest.approx(1e-2, rel=0.1)

    # The misfit is quadratic in the strength of a source: differences are exact.
    step = 1e-2
    after, before = (
        experiment(medium, flux, boundaries, dim, device, 0.5 + sign * step).misfit(Material(*base), data)
        for sign in (1, -1)
    )
    number = 2 if fluid else 1
    assert (after - before) / (2 * step) == pytest.approx(result.sources[0, number], rel=1e-9)


@pytest.mark.parametrize("steps", [1, 2, 7, 30, 64])
@pytest.mark.parametrize("snapshots", [1, 2, 3, 5, 11])
def test_no_schedule_computes_fewer_steps(steps: int, snapshots: int) -> None:
    """The least number of steps forward by trying every place of the next snapshot, for all lengths."""

    @cache
    def least(length: int, kept: int) -> int:
        if length <= 1:
            return 0
        if kept == 1:
            return length * (length - 1) // 2
        return min(m + least(length - m, kept - 1) + least(m, kept) for m in range(1, length))

    kept, computed = [0], 0
    for step in reversed(range(steps)):
        while kept[-1] > step:
            kept.pop()
        begin = kept[-1]
        kept += stored_steps(begin, step + 1, snapshots - len(kept)) if begin < step else []
        assert len(kept) <= snapshots
        computed += step - begin
    assert computed == least(steps, snapshots)


def test_few_snapshots_give_the_same_gradient() -> None:
    shot = experiment("mixed", "upwind", "absorbing", 2, "cpu")
    count = shot.mesh.count
    shear = np.where(np.arange(count) % 3 > 0, 1.0, 0.0)
    medium = Material(np.ones(count), np.full(count, 1.9), shear)
    data = shot.simulate(Material(np.ones(count), np.full(count, 2.0), shear))
    many, few = (replace(shot, snapshots=number).gradient(medium, data) for number in (None, 2))
    assert np.array_equal(many.cp, few.cp) and np.array_equal(many.sources, few.sources) and many.cp.any()


def test_the_misfit_is_zero_where_the_data_come_from(device: str) -> None:
    shot = experiment("acoustic", "upwind", "absorbing", 2, device)
    medium = Material.uniform(shot.mesh.count, 1.0, 1.9)
    result = shot.gradient(medium, shot.simulate(medium))
    assert isinstance(result, Gradient) and result.misfit == 0
    assert not result.cp.any() and not result.density.any() and not result.sources.any()


def rejected(change: str) -> None:
    shot = experiment("acoustic", "upwind", "absorbing", 2, "cpu")
    count, options = shot.mesh.count, shot.options
    water = Material.uniform(count, 1.0, 1.9)
    if change == "receivers":
        Experiment(shot.mesh, 0.01, 2, (), [])
    elif change == "snapshots":
        replace(shot, snapshots=0)
    elif change == "part":
        Experiment(Mesh.of_forest(Forest.uniform(Brick((2, 1), (False, False)), 0), ranks=2), 0.01, 2, (), [(0.5, 0.5)])
    elif change == "nodes":
        shot.simulate(Material(*(np.full((count, 9), value) for value in (1.0, 1.9, 0.0))))
    elif change == "field":
        Experiment(shot.mesh, 0.01, 2, (), [(0.5, 0.5)], ("sxx",), options).simulate(water)
    else:
        shot.misfit(water, np.zeros((3, 2, 2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("receivers", "there are no receivers"),
        ("snapshots", "snapshots = 0: must be at least 1"),
        ("part", "all elements of the mesh must be on one rank"),
        ("nodes", "the media must be defined by element"),
        ("field", "'sxx' is not supported; use p in fluids, or vx, vy, vz"),
        ("data", "data of shape (3, 2, 2), but a run has (30, 2, 2)"),
    ],
)
def test_what_has_no_gradient_is_reported_in_one_line(change: str, message: str) -> None:
    with pytest.raises(CaseError) as error:
        rejected(change)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_the_example_lowers_the_misfit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("invert", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    every = module.experiments
    monkeypatch.setattr(module, "experiments", lambda mesh: every(mesh)[:1])
    result = module.main(1, tmp_path)
    assert result["misfit"][-1] < 0.5
    assert {path.name for path in tmp_path.iterdir()} == {"inversion.json", "inversion.png"}
