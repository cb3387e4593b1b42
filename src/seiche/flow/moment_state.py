# SPDX-License-Identifier: BSD-3-Clause
"""Coefficients of populations in moment storage, and populations from stored coefficients with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend, open_backend
from seiche.flow.velocity_set import VelocitySet
from seiche.kernels.registry.flow import MOMENT_EDGE, outgoing_populations
from seiche.solver.state import Rows

#: Coefficients per site. The first four, density and momentum, are stored as float32 if the others are float16.
COEFFICIENTS, CONSERVED = 10, 4
#: Number of values in each contiguous group of a site; a group has at most 16 bytes.
GROUPS = {"float64": (2, 2, 2, 2, 2), "float32": (4, 4, 2), "float16": (8, 4, 2)}
_VOLUME = MOMENT_EDGE**3
#: Row of a tile without walls in the table of tiles, and the entries of the tile itself and of its walls.
_NO_WALLS, _OWN_ENTRY, _ENTRIES = (1 << 32) - 1, 13, 28

Floats = npt.NDArray[np.float64]


def values_per_site(storage: str) -> int:
    """Return the number of stored values per site; with float16, each float32 counts as two values."""
    return COEFFICIENTS + (CONSERVED if storage == "float16" else 0)


def sites_per_sector(storage: str) -> int:
    """Return the number of sites whose narrowest groups fill a memory sector of 32 bytes."""
    return 32 // (GROUPS[storage][-1] * np.dtype(storage).itemsize)


def basis(velocity_set: VelocitySet) -> Floats:
    """Return the matrix (Q, 10) that maps coefficients to populations (theory/flow, eq. 41)."""
    x, y, z = velocity_set.vectors.T
    columns = (np.ones_like(x), x, y, z, x * x, y * y, z * z, 2 * x * y, 2 * x * z, 2 * y * z)
    return np.asarray(velocity_set.weights[:, None] * np.stack(columns, axis=1))


def coefficients(populations: Floats, velocity_set: VelocitySet, unknown: npt.NDArray[np.uint32]) -> Floats:
    """Return the coefficients (n, 10) of the regularised part of `populations` (n, Q).

    They are the result of a weighted least-squares fit, which conserves mass and momentum. Populations whose bits are
    set in `unknown` (n,) are ignored.
    """
    result = np.empty((len(populations), COEFFICIENTS))
    inverse_root = 1.0 / np.sqrt(velocity_set.weights)
    for mask in np.unique(unknown):
        is_defined = np.array([not int(mask) >> q & 1 for q in range(velocity_set.Q)])
        scale = inverse_root[is_defined]
        inverse = np.linalg.pinv(scale[:, None] * basis(velocity_set)[is_defined]) * scale
        rows = unknown == mask
        result[rows] = populations[rows][:, is_defined] @ inverse.T
    return result


def populations_of_moments(
    backend: Backend, moments: npt.NDArray[Any], velocity_set: VelocitySet, compute: str
) -> npt.NDArray[Any]:
    """Return the outgoing populations (n, Q) of sites with `moments` (n, 10), in the precision `compute`."""
    count, tiles = len(moments), -(-len(moments) // _VOLUME)
    store = "float64" if moments.dtype == np.float64 and compute == "float64" else "float32"
    padded = np.zeros((tiles * _VOLUME, COEFFICIENTS), store)
    padded[:count] = moments
    numbers, first = np.empty((tiles, COEFFICIENTS * _VOLUME), store), 0
    for width in GROUPS[store]:
        group = padded[:, first : first + width].reshape(tiles, _VOLUME * width)
        numbers[:, first * _VOLUME : (first + width) * _VOLUME] = group
        first += width
    table = np.full((tiles, _ENTRIES), _NO_WALLS, np.uint32)
    table[:, _OWN_ENTRY] = np.arange(tiles) * COEFFICIENTS
    unused = backend.zeros(velocity_set.Q, np.uint32)
    layout = {"f_in": backend.upload(numbers), "table": backend.upload(table), "f_out": unused, "walls": unused}
    layout |= {name: unused for name in ("link_rows", "link_masks", "link_values")}
    spec = outgoing_populations("moments", compute, store, velocity_set=velocity_set.name)  # type: ignore[arg-type]
    kernel, out = backend.load(spec), backend.zeros(velocity_set.Q * count, compute)
    sites = backend.upload(np.arange(count))
    kernel.bind(backend.pack(kernel, layout=layout, sites=sites, out=out, stride=count), 0, count)()
    return np.asarray(backend.download(out).reshape(velocity_set.Q, count).T)


class PopulationsOfMoments:
    """Outgoing populations (n, Q) of sites, computed on access from their moments, on the CPU in any thread.

    Some rows have values of their own, which moments do not represent.
    """

    def __init__(
        self,
        moments: Rows,
        own_values: tuple[npt.NDArray[np.int64], Rows],
        velocity_set: VelocitySet,
        compute: str,
    ) -> None:
        """Store the moments (n, 10), and the ascending rows (m,) with `own_values` and these (m, Q)."""
        self._moments, (self._rows, self._values) = moments, own_values
        self._velocity_set, self._compute = velocity_set, compute
        self.dtype, self.shape = np.dtype(compute), (len(moments), velocity_set.Q)

    def __len__(self) -> int:
        """Return the number of sites."""
        return self.shape[0]

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        """Return the rows of a slice."""
        begin, end, step = rows.indices(len(self))
        if step != 1:
            return self[:][rows]
        populations = populations_of_moments(
            open_backend("cpu", 1), self._moments[begin:end], self._velocity_set, self._compute
        )
        first, last = np.searchsorted(self._rows, [begin, end])
        populations[self._rows[first:last] - begin] = self._values[first:last]
        return populations
