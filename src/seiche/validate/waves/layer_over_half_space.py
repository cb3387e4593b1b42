# SPDX-License-Identifier: BSD-3-Clause
"""A double couple in the half space below a layer: LOH.1 and, with attenuation, LOH.3 (Day et al. 2001)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from seiche.backend import parse_device
from seiche.domain.world import World
from seiche.kernels.registry import Real
from seiche.validate.check import Check, Floats, Setting
from seiche.validate.waves.layered import Layered, LayerMedium
from seiche.validate.waves.misfits import KRISTEKOVA, envelope_and_phase, misfit, misfit_by_frequency
from seiche.validate.waves.point_sources import draw_traces
from seiche.waves import Brick, Gaussian, Material, Mesh, PointSource, Solver
from seiche.waves.attenuation import attenuated
from seiche.waves.sizes import SizeField
from seiche.waves.trees import stretched

_DAY = "Day et al. 2001, PEER Lifelines 1A01; wavenumber integration"
LOSSLESS = (LayerMedium(2600.0, 4000.0, 2000.0), LayerMedium(2700.0, 6000.0, 3464.0))
LOSSY = (LayerMedium(2600.0, 4000.0, 2000.0, 120.0, 40.0), LayerMedium(2700.0, 6000.0, 3464.0, 155.9, 69.3))
THICKNESS, DEPTH, MOMENT = 1000.0, 2000.0, 1e18


@dataclass(frozen=True)
class Size:
    """Size of a check: uniform trees around the source, and growing trees towards the absorbing sides.

    The central part has 2 `half` by 2 `half` trees with the edge length `tree`, `deep` of them below the layer and
    `layers` in it. If `halved`, those in the middle of the layer and around the source are split. On each side and
    below there are `beyond` more trees, each wider than the previous one by the factor `growth`. They form the
    absorbing layer, except for the first `buffer` ones. These keep it away from the receivers: it is shorter than the
    wavelengths below 0.2 Hz, and next to a receiver it changes the records by 1 to 2 % of their norm. `sigma` is the
    width of the Gaussian moment rate, which peaks at 6 sigma. Receiver k = 1, 2, ... is
    at k (600 m, 800 m). `bounds` are those of the relative errors of a receiver and of a component, and of the envelope
    and phase misfits.
    """

    half: int
    deep: int
    beyond: int
    growth: float
    tree: float
    layers: int
    halved: bool
    nodes: int
    sigma: float
    duration: float
    receivers: int
    bounds: tuple[float, float, float, float]
    precision: Real = "float64"
    #: Number of uniform refinements of the mesh.
    splits: int = 0
    #: Number of growing trees in front of the absorbing layer.
    buffer: int = 0

    @property
    def band(self) -> tuple[float, float]:
        """Return the frequency band of the misfits, Hz; at its upper end, the pulse spectrum has decreased to e^-2."""
        return 0.2, 1 / (np.pi * self.sigma)

    @property
    def sponge(self) -> float:
        """Return the thickness of the absorbing layer, that of the growing trees behind the first `buffer` ones, m."""
        return sum(self._widths[: self.beyond - self.buffer])

    @property
    def _widths(self) -> list[float]:
        return stretched(2 * self.half, self.tree, (self.beyond, self.beyond), self.growth)

    def mesh(self, world: World) -> Mesh:
        """Return the mesh of a rank, centred above the source and with the ground at z = 0."""
        widths = self._widths
        vertical_widths = stretched(self.deep, self.tree, (self.beyond, 0), self.growth)
        vertical_widths += [THICKNESS / self.layers] * self.layers
        first, last, ground, wide = self.beyond, self.beyond + 2 * self.half, len(vertical_widths), len(widths)
        middle, source = first + self.half, ground - self.layers - (DEPTH - THICKNESS) / self.tree
        # Boxes of fine elements end in the middle of trees: they must not touch, and split, the trees outside.
        boxes = [
            ([0, 0, 0], [wide, wide, ground], 1.001),
            ([first + 0.5, first + 0.5, ground - self.layers + 0.5], [last - 0.5, last - 0.5, ground], 0.501),
            ([middle - 0.5, middle - 0.5, source - 0.5], [middle + 0.5, middle + 0.5, source + 0.5], 0.501),
        ]
        lower, upper, sizes = zip(*boxes[: 3 if self.halved else 1], strict=True)
        side = -sum(widths) / 2
        return Mesh.generate(
            Brick((wide, wide, ground), (False,) * 3),
            SizeField(lower, upper, np.array(sizes) / 2**self.splits),
            tree_size=(widths, widths, vertical_widths),
            origin=(side, side, -sum(vertical_widths)),
            world=world,
        )


QUICK = Size(2, 2, 3, 1.3, 1000.0, 1, True, 5, 0.2, 4.0, 2, (0.07, 0.09, 0.045, 0.015))
REDUCED = Size(4, 3, 5, 1.2, 1000.0, 1, True, 6, 0.15, 5.0, 4, (0.025, 0.03, 0.012, 0.005))
FULL = Size(17, 9, 13, 1.15, 540.0, 2, True, 8, 0.06, 9.0, 10, (0.02, 0.02, 0.02, 0.02), "float32", buffer=5)


@dataclass(frozen=True)
class ComparedSeismograms:
    """Radial, transverse and vertical velocities, (times, receivers, 3): computed with `nodes` nodes, and exact."""

    times: Floats
    computed: Floats
    exact: Floats
    nodes: int


def seismograms(
    size: Size,
    media: tuple[LayerMedium, LayerMedium],
    *,
    device: str = "cpu",
    threads: int | None = None,
    world: World | None = None,
) -> ComparedSeismograms:
    """Return the computed and the exact seismograms of the receivers (collective)."""
    layer, half_space = media
    mesh = size.mesh(world or World.serial())
    soft = mesh.lower[: mesh.count, 2] >= -THICKNESS - 1.0

    def values(name: str) -> Floats:
        return np.asarray(np.where(soft, getattr(layer, name), getattr(half_space, name)), np.float64)

    material, loss = Material(values("density"), values("cp"), values("cs")), None
    if np.isfinite(layer.qs):
        qp, qs = values("qp"), values("qs")
        material, loss = attenuated(material, qp, qs, dim=3, band=layer.band, reference=layer.reference, mechanisms=3)
    positions = [(600.0 * k, 800.0 * k, 0.0) for k in range(1, size.receivers + 1)]
    pulse = Gaussian(size.sigma, 6 * size.sigma)
    couple = [[0.0, MOMENT, 0.0], [MOMENT, 0.0, 0.0], [0.0, 0.0, 0.0]]
    solver = Solver(
        mesh,
        material,
        nodes=size.nodes,
        boundaries=("absorbing",) * 5 + ("free",),
        precision=size.precision,
        device=device,
        threads=threads,
        sources=[PointSource((0.0, 0.0, -DEPTH), pulse, moment=couple)],
        receivers=positions,
        sponge=size.sponge,
        attenuation=loss,
        world=world,
    )
    solver.advance(int(size.duration / solver.dt))
    samples = solver.samples()
    times: Floats = solver.dt * np.arange(len(samples) + 1, dtype=np.float64)
    solver.close()
    points = np.array(positions)[:, :2]
    x, y = (points / np.linalg.norm(points, axis=1)[:, None]).T
    east, north = samples[..., 0], samples[..., 1]
    computed = np.stack([x * east + y * north, x * north - y * east, samples[..., 2]], -1)
    exact = Layered(layer, half_space, THICKNESS, DEPTH).velocity(times, points, MOMENT, size.sigma, pulse.delay)[1:]
    return ComparedSeismograms(times[1:], computed, exact, mesh.total * size.nodes**3)


def lossless_layer(setting: Setting) -> list[Check]:
    """Check the velocities at the surface above a lossless layer; at full size on a GPU, reduced on a CPU."""
    size = FULL if parse_device(setting.device).is_gpu else REDUCED
    return _checks(setting, QUICK if setting.quick else size, "LOH.1", LOSSLESS)


def attenuating_layer(setting: Setting) -> list[Check]:
    """Check the velocities at the surface above an attenuating layer; not in the quick form."""
    if setting.quick:
        return []
    return _checks(setting, FULL if parse_device(setting.device).is_gpu else REDUCED, "LOH.3", LOSSY)


def _checks(setting: Setting, size: Size, name: str, media: tuple[LayerMedium, LayerMedium]) -> list[Check]:
    result = seismograms(size, media, device=setting.device, threads=setting.threads)
    computed, exact = result.computed, result.exact
    traces, exact_traces = (values[:, :2].reshape(len(values), -1) for values in (computed, exact))
    plot = partial(draw_traces, times=result.times, computed=traces, exact=exact_traces, label="velocity")
    by_receiver = [values.transpose(0, 2, 1).reshape(-1, size.receivers) for values in (computed, exact)]
    dt = float(result.times[1] - result.times[0])
    misfits = (misfit(*by_receiver), misfit(computed, exact), *envelope_and_phase(computed, exact, dt, size.band))
    millions = result.nodes / 1e6
    quantities = (
        "relative error of a receiver",
        "relative error of a component",
        "misfit of a component's envelope",
        "misfit of a component's phase",
    )
    checks = [
        Check(
            f"{name}, {millions:.2g} million nodes, sigma {size.sigma:g} s: largest {quantity} ({_worst(values)})",
            float(values.max()),
            bound,
            reference=_DAY if number < 2 else f"{_DAY}; {KRISTEKOVA}",
            plot=plot if number == 0 else None,
        )
        for number, (quantity, values, bound) in enumerate(zip(quantities, misfits, size.bounds, strict=True))
    ]
    receiver, component = _largest(misfits[1])
    parts = misfit_by_frequency(computed, exact, dt, size.band)[:, receiver, component]
    low, high = (f"{limit:.2g} Hz" for limit in size.band)
    ranges = (f"below {low}", f"between {low} and {high}", f"above {high}")
    return checks + [
        Check(
            f"{name}: error of the worst component {text.format(*size.band)}",
            float(part),
            sense="recorded",
            reference=_DAY,
        )
        for text, part in zip(ranges, parts, strict=True)
    ]


def _largest(values: Floats) -> tuple[int, ...]:
    """Return the indices of the largest value."""
    return tuple(int(index) for index in np.unravel_index(int(values.argmax()), values.shape))


def _worst(values: Floats) -> str:
    """Return the receiver, and the component if any, with the largest of (receivers,) or (receivers, components)."""
    receiver, *component = _largest(values)
    return ", ".join((f"receiver {receiver + 1}", *(("radial", "transverse", "vertical")[k] for k in component)))
