# SPDX-License-Identifier: BSD-3-Clause
"""Gradients of the misfit against differences of it, the adjoint of a whole run, and the inversion that uses them."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from benchmarks.page.stored import read_results
from benchmarks.page.waves_gradient import gradient_part

from seiche.backend import open_backend
from seiche.bench.waves_gradient import GradientRow, main, predicted_ratio
from seiche.errors import CaseError
from seiche.kernels.registry.dg import Discretisation
from seiche.waves import Brick, Forest, Material, Mesh, PointSource, Ricker
from seiche.waves.adjoint import Experiment, Gradient
from seiche.waves.revolve import reversal_of, stored_steps
from seiche.waves.stored_states import StoredStates
from waves_adjoint_oracle import reference_gradient

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "inversion-2d" / "invert.py"


def experiment(medium: str, flux: str, boundaries: str, dim: int, device: str, force: float = 0.5) -> Experiment:
    """Return a shot; "mixed" media are elastic ones, some of them fluid, on a mesh with hanging faces."""
    forest = Forest.uniform(Brick((3, 2, 2)[:dim], (dim == 3, False, False)[:dim]), 0)
    if medium in ("mixed", "hanging"):
        forest = forest.refined(np.arange(len(forest)) == 2)
    mesh = Mesh.of_forest(forest)
    step, steps = (0.03, 50) if (mesh.child >= 0).any() else (0.05, 30)
    pulse = Ricker(0.5, 0.8)
    options = {"nodes": 3, "flux": flux, "boundaries": boundaries, "device": device, "threads": 1}
    if flux == "leapfrog":
        options |= {"flux": "central", "integrator": "leapfrog"}
    if boundaries == "layer":
        options |= {"boundaries": "absorbing", "sponge": 0.8}
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
        options,
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


def random_medium(shot: Experiment, medium: str, *, nodal: bool = False) -> np.ndarray:
    """Return density, cp and cs by element or by node."""
    random = np.random.default_rng(2)
    shape = (shot.mesh.count, shot.options["nodes"] ** shot.mesh.dim)[: 2 if nodal else 1]
    shear = np.zeros(shape) if medium in ("acoustic", "hanging") else 1 + 0.1 * random.random(shape)
    shear[::3] *= medium != "mixed"
    return np.stack([1 + 0.3 * random.random(shape), 1.8 + 0.2 * random.random(shape), shear])


#: Absorbing sides with a layer.
LAYERS = [("acoustic", "upwind", "layer", 2), ("mixed", "upwind", "layer", 2), ("elastic", "central", "layer", 2)]
LEAPFROG = [
    ("acoustic", "leapfrog", "absorbing", 2),
    ("mixed", "leapfrog", "absorbing", 2),
    ("mixed", "leapfrog", "layer", 2),
    ("elastic", "leapfrog", "absorbing", 3),
]
ALL = (*CASES, *LAYERS, *LEAPFROG)


@pytest.mark.parametrize(
    ("medium", "flux", "boundaries", "dim", "nodal"),
    [(*case, False) for case in ALL] + [(*case, True) for case in ALL if case[-1] == 2 or case[0] == "mixed"],
)
def test_gradients_pass_the_taylor_test(
    medium: str, flux: str, boundaries: str, dim: int, device: str, nodal: bool
) -> None:
    """Central differences err by h^2, with nothing below: the gradient is that of the discrete misfit."""
    random = np.random.default_rng(3)
    shot = experiment(medium, flux, boundaries, dim, device)
    base = random_medium(shot, medium, nodal=nodal)
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

    # The samples are linear in the strengths s: s . gradient is the product of samples and residuals.
    names = "acoustic" if medium in ("acoustic", "hanging") else "elastic"
    strengths = [source.strengths(names, dim) for source in shot.sources]  # type: ignore[arg-type]
    samples = shot.simulate(Material(*base))
    expected = shot.dt * float((samples * (samples - data)).sum())
    assert float((np.array(strengths) * result.sources).sum()) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("medium", "flux", "boundaries", "dim"), CASES)
def test_gradients_equal_the_adjoint_on_the_host(
    medium: str, flux: str, boundaries: str, dim: int, device: str
) -> None:
    shot = experiment(medium, flux, boundaries, dim, device)
    base = random_medium(shot, medium)
    data = shot.simulate(Material(base[0], 1.05 * base[1], base[2]))
    result, expected = shot.gradient(Material(*base), data), reference_gradient(shot, Material(*base), data)
    assert result.misfit == expected.misfit > 0
    for name in ("density", "cp", "cs", "sources"):
        values, reference = getattr(result, name), getattr(expected, name)
        np.testing.assert_allclose(values, reference, rtol=0, atol=1e-12 * np.abs(reference).max())


@pytest.mark.parametrize("nodal", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e-12])
def test_single_precision_gives_the_gradient_to_its_accuracy(scale: float, nodal: bool, device: str) -> None:
    """Samples of 1e-12 have squares below the smallest numbers of single precision."""
    results = []
    for precision in ("float64", "float32"):
        shot = experiment("mixed", "upwind", "absorbing", 2, device)
        base = random_medium(shot, "mixed", nodal=nodal)
        sources = [replace(source, time=lambda t, pulse=source.time: scale * pulse(t)) for source in shot.sources]
        shot = replace(shot, sources=sources, options={**shot.options, "precision": precision})
        data = shot.simulate(Material(base[0], 1.05 * base[1], base[2]))
        results.append(shot.gradient(Material(*base), data))
    for name in ("density", "cp", "cs", "sources"):
        double, single = (getattr(result, name) for result in results)
        np.testing.assert_allclose(single, double, rtol=0, atol=2e-5 * np.abs(double).max())


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
    # The run itself stores the same states, and the steps after the last of them are repeated.
    last = max([0, *stored_steps(0, steps, snapshots - 1)])
    work = reversal_of(steps, snapshots)
    assert (work.computed, work.restored) == (computed + steps - last, steps)


def test_few_snapshots_give_the_same_gradient() -> None:
    shot = experiment("mixed", "upwind", "absorbing", 2, "cpu")
    count = shot.mesh.count
    shear = np.where(np.arange(count) % 3 > 0, 1.0, 0.0)
    medium = Material(np.ones(count), np.full(count, 1.9), shear)
    data = shot.simulate(Material(np.ones(count), np.full(count, 2.0), shear))
    many, few = (replace(shot, snapshots=number).gradient(medium, data) for number in (None, 2))
    assert np.array_equal(many.cp, few.cp) and np.array_equal(many.sources, few.sources) and many.cp.any()


def test_states_stored_on_the_host_are_those_on_the_device(device: str) -> None:
    backend = open_backend(device, 1)
    state = backend.zeros((3, 2, 5), np.float32)
    stored = StoredStates(backend, state, 3, on_device=2)
    values = np.random.default_rng(1).random((4, 3, 2, 5)).astype(np.float32)

    def store(step: int) -> None:
        backend.assign(state, values[step])
        stored.push(step)

    for step in range(3):
        store(step)
    assert (stored.room, stored.allocated, stored.on_host) == (0, 3, 1)
    stored.pop()
    store(3)
    for step in (3, 1, 0):
        assert stored.step == step
        stored.restore()
        assert np.array_equal(backend.download(state), values[step])
        stored.pop()
    assert (stored.room, stored.allocated, stored.on_host) == (3, 3, 1)


def test_the_misfit_is_zero_where_the_data_come_from(device: str) -> None:
    shot = experiment("acoustic", "upwind", "absorbing", 2, device)
    medium = Material.uniform(shot.mesh.count, 1.0, 1.9)
    result = shot.gradient(medium, shot.simulate(medium))
    assert isinstance(result, Gradient) and result.misfit == 0
    assert not result.cp.any() and not result.density.any() and not result.sources.any()


def test_the_benchmark_measures_a_run_and_a_gradient(tmp_path: Path) -> None:
    path = tmp_path / "gradient.json"
    options = {"media": ["elastic"], "precisions": ["float64"], "threads": 1}
    rows = main(size=1, nodes=[3], steps=20, output=path, **options)  # type: ignore[arg-type]
    (result,) = read_results(tmp_path, "waves-gradient", GradientRow)
    assert list(result.rows) == rows and rows[0].elements == 27 and rows[0].snapshots == 2
    text = gradient_part([result])
    assert "| elastic | element | float64 | 3 | 27 | 1 | 20 | 2 |" in text and gradient_part([]) == ""
    # Ten stored states for 100 steps: 2.26 forward runs, the steps once more, 1.6 for the adjoint, 0.25 for copies.
    assert predicted_ratio(Discretisation("elastic", 3, 6, real="float32"), 100, 10) == pytest.approx(5.0, abs=0.1)


def rejected(change: str) -> None:
    shot = experiment("acoustic", "upwind", "absorbing", 2, "cpu")
    options, water = shot.options, Material.uniform(shot.mesh.count, 1.0, 1.9)
    if change == "receivers":
        Experiment(shot.mesh, 0.01, 2, (), [])
    elif change == "snapshots":
        replace(shot, snapshots=0)
    elif change == "part":
        Experiment(Mesh.of_forest(Forest.uniform(Brick((2, 1), (False, False)), 0), ranks=2), 0.01, 2, (), [(0.5, 0.5)])
    elif change == "field":
        Experiment(shot.mesh, 0.01, 2, (), [(0.5, 0.5)], ("sxx",), options).simulate(water)
    else:
        shot.misfit(water, np.zeros((3, 2, 2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("receivers", "there are no receivers"),
        ("snapshots", "snapshots = 0: must be at least 1"),
        ("part", "a mesh on several ranks requires their world"),
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
