# SPDX-License-Identifier: BSD-3-Clause
"""Density, velocity, stress, shear rate and what acts on the wall of the sites of a rank, computed on its device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend, Kernel
from seiche.domain.links import outward_normals
from seiche.flow.layout import Layout
from seiche.flow.physics import Physics
from seiche.flow.region import Region
from seiche.flow.velocity_set import CS2
from seiche.kernels.registry.flow import observe, wall_shear_stress

#: Columns of the observation kernel by field.
COLUMNS = {"density": (0, 1), "velocity": (1, 4), "stress": (4, 10), "shear_rate": (10, 11)}
#: Fields of wall sites, three components each.
ON_WALL = ("wall_shear_stress", "traction")
#: Sites observed at once: bounds the memory beside the populations.
CHUNK = 1 << 21


@dataclass(frozen=True)
class Monitor:
    """What is watched: total mass (in sites of density 1), greatest Mach number, mass a step into each iolet."""

    step: int
    mass: float
    mach: float
    flow: npt.NDArray[np.float64]


class Observation:
    """Observe the state before a step; halos must be current."""

    def __init__(
        self,
        backend: Backend,
        layout: Layout,
        region: Region,
        physics: Physics,
        precision: tuple[Any, str],
    ) -> None:
        """Prepare for sites of `region`.

        Args:
            backend: the device.
            layout: where the populations are.
            region: the rank's sites.
            physics: relaxation and force of the kernels.
            precision: (compute, storage) of the kernels.
        """
        self._backend, self._layout, self._region = backend, layout, region
        self._physics, self._precision = physics, precision
        count = len(layout.item)
        self._stride = max(1, min(CHUNK, count))
        self._out = backend.zeros(11 * self._stride, precision[0])
        self._items = backend.upload(layout.item)
        self._count = count
        self._wall: tuple[Array, Any] | None = None
        self._velocity_before: list[Array] | None = None

    def _kernel(self, phase: int) -> Kernel:
        name, physics = self._layout.kernel_name(phase), self._physics
        return self._backend.load(
            observe(name, *self._precision, physics.relaxation, physics.other_force, **physics.options)  # type: ignore[arg-type]
        )

    def _chunks(self, phase: int) -> Iterator[tuple[int, int, Array]]:
        """Yield (begin, end, columns) with columns[c * stride + k] for k < end - begin."""
        kernel, physics = self._kernel(phase), self._physics
        for begin in range(0, self._count, self._stride):
            end = min(begin + self._stride, self._count)
            arguments = self._backend.pack(
                kernel,
                layout=self._layout.members(phase),
                sites=self._backend.pointer(self._items) + 8 * begin,
                out=self._out,
                stride=self._stride,
                relaxation=physics.relaxation_members,
                force=physics.other_force_members,
            )
            kernel.bind(arguments, 0, end - begin)()
            yield begin, end, self._out

    def fields(self, names: Sequence[str], phase: int) -> dict[str, npt.NDArray[Any]]:
        """Return the named fields of the owned sites, rows in the order of `Region.owned`.

        Names: density, velocity (n, 3), stress (n, 6: xx yy zz xy xz yz, deviatoric), shear_rate,
        wall_shear_stress and traction (n, 3; zero off the wall).

        Raises:
            KeyError: an unknown name.
        """
        unknown = set(names) - set(COLUMNS) - set(ON_WALL)
        if unknown:
            raise KeyError(f"no field {sorted(unknown)}; there are {[*COLUMNS, *ON_WALL]}")
        real = self._precision[0]
        result = {name: np.zeros((self._count, _width(name)), real) for name in names}
        for begin, end, out in self._chunks(phase):
            for name in names:
                if name in ON_WALL:
                    on_wall = self._wall_shear_stress if name == "wall_shear_stress" else self._traction
                    rows, stress = on_wall(begin, end)
                    result[name][begin + rows] = stress
                    continue
                for place, column in enumerate(range(*COLUMNS[name])):
                    values = self._backend.download(out[column * self._stride : column * self._stride + end - begin])
                    result[name][begin:end, place] = values + (1.0 if name == "density" else 0.0)
        return {name: values[:, 0] if values.shape[1] == 1 else values for name, values in result.items()}

    def _wall_shear_stress(self, begin: int, end: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return rows relative to `begin` and the stress vectors of the wall sites among [begin, end)."""
        rows, normals = self._walls(begin, end)
        real = self._precision[0]
        if not len(rows):
            return rows, np.zeros((0, 3), real)
        kernel, out = self._backend.load(wall_shear_stress(real)), self._backend.zeros(3 * len(rows), real)
        walls, upright = self._backend.upload(rows), self._backend.upload(normals.astype(real))
        arguments = self._backend.pack(
            kernel, observed=self._out, stride=self._stride, walls=walls, normals=upright, out=out
        )
        kernel.bind(arguments, 0, len(rows))()
        return rows, self._backend.download(out).reshape(-1, 3)

    def _walls(self, begin: int, end: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return rows relative to `begin` and outward normals of the wall sites among [begin, end)."""
        normals = outward_normals(self._region.sites)[self._region.boundary_rows]
        rows = self._region.boundary_sites
        mine = (rows >= begin) & (rows < end) & np.any(normals != 0, axis=1)
        return rows[mine] - begin, normals[mine]

    def _traction(self, begin: int, end: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
        """Return rows relative to `begin` and sigma n - cs^2 (rho - 1) n of the wall sites among [begin, end)."""
        rows, normals = self._walls(begin, end)
        wanted = (0, *range(*COLUMNS["stress"]))
        excess, xx, yy, zz, xy, xz, yz = (
            self._backend.download(self._out[c * self._stride : c * self._stride + end - begin])[rows] for c in wanted
        )
        x, y, z = normals.astype(self._precision[0]).T
        pressure = CS2 * excess
        pull = (xx * x + xy * y + xz * z, xy * x + yy * y + yz * z, xz * x + yz * y + zz * z)
        return rows, np.stack([t - pressure * n for t, n in zip(pull, (x, y, z), strict=True)], axis=1)

    def wall_rows(self) -> npt.NDArray[np.int64]:
        """Return the rows of the region that are wall sites, (w,)."""
        return self._walls(0, self._count)[0]

    def wall_shear_stress(self, phase: int) -> Array:
        """Return the wall shear stress of all wall sites on the device, (3 w,), site by site, until the next call."""
        real, physics = self._precision[0], self._physics
        if self._wall is None:
            rows, normals = self._walls(0, self._count)
            upload, count = self._backend.upload, len(rows)
            members = {
                "observed": self._backend.zeros(11 * max(count, 1), real),
                "stride": max(count, 1),
                "walls": upload(np.arange(count, dtype=np.int64)),
                "normals": upload(normals.astype(real)),
                "out": self._backend.zeros(3 * count, real),
            }
            self._wall = upload(self._layout.item[rows]), members
        sites, members = self._wall
        count = members["out"].size // 3
        if count:
            kernel = self._kernel(phase)
            arguments = self._backend.pack(
                kernel,
                layout=self._layout.members(phase),
                sites=sites,
                out=members["observed"],
                stride=members["stride"],
                relaxation=physics.relaxation_members,
                force=physics.other_force_members,
            )
            kernel.bind(arguments, 0, count)()
            stress = self._backend.load(wall_shear_stress(real))
            stress.bind(self._backend.pack(stress, **members), 0, count)()
        return members["out"]

    def velocity_change(self, phase: int) -> tuple[float, float]:
        """Return the sums over sites of |u - u'|^2 and |u|^2, u' of the last call; infinity for the first one."""
        change, square = 0.0, 0.0
        if self._velocity_before is None:
            self._velocity_before = [self._backend.zeros(self._count, self._precision[0]) for _ in range(3)]
            change = float("inf")
        for begin, end, out in self._chunks(phase):
            for axis, before in enumerate(self._velocity_before):
                now = out[(1 + axis) * self._stride : (1 + axis) * self._stride + end - begin]
                difference = now - before[begin:end]
                change += self._backend.sum(difference * difference)
                square += self._backend.sum(now * now)
                before[begin:end] = now
        return change, square

    def totals(self, phase: int) -> tuple[float, float, int]:
        """Return the sum of rho - 1, the greatest |u|^2, and a row of the region that is not finite (or -1)."""
        excess, fastest, bad = 0.0, 0.0, -1
        for begin, end, out in self._chunks(phase):
            column = [out[c * self._stride : c * self._stride + end - begin] for c in range(4)]
            excess += self._backend.sum(column[0])
            square = column[1] * column[1] + column[2] * column[2] + column[3] * column[3]
            fastest = float(np.fmax(fastest, self._backend.max(square)))
            if bad < 0 and not (np.isfinite(self._backend.sum(column[0])) and np.isfinite(self._backend.max(square))):
                whole = self._backend.download(column[0]) + self._backend.download(square)
                wrong = np.flatnonzero(~np.isfinite(whole))
                bad = begin + int(wrong[0]) if len(wrong) else -1
        return excess, fastest, bad


def _width(name: str) -> int:
    return 3 if name in ON_WALL else COLUMNS[name][1] - COLUMNS[name][0]
