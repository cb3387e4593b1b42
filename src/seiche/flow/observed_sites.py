# SPDX-License-Identifier: BSD-3-Clause
"""Sites near openings whose density, velocity and stress are observed before each sweep."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend

#: Columns of the kernel `Observe`.
COLUMNS = 11


class ObservedSites:
    """Parts of sites, observed in one launch where they are contiguous.

    `items` (n,) are the layout items of all parts on the device. Column c of site k is `columns[c * stride + k]`.
    """

    def __init__(self, backend: Backend, real: str, parts: list[tuple[npt.NDArray[np.int64], int]]) -> None:
        """Allocate the columns of all `parts`: layout items (m,), those that need no data from other ranks first.

        The second entry of a part is the number of these.
        """
        sizes = [len(items) for items, _ in parts]
        #: First site of each part.
        self.first: list[int] = np.concatenate([[0], np.cumsum(sizes)]).astype(int).tolist()
        self.stride = self.first[-1]
        self._interior = [first + count for first, (_, count) in zip(self.first, parts, strict=False)]
        self.items: Array = backend.upload(np.concatenate([np.zeros(0, np.int64), *(items for items, _ in parts)]))
        self.columns: Array = backend.zeros(COLUMNS * max(self.stride, 1), real)
        self._backend = backend

    def members(self, part: int) -> dict[str, Any]:
        """Return the kernel arguments `observed` and `stride` of a part."""
        offset = self.first[part] * np.dtype(self.columns.dtype).itemsize
        return {"observed": self._backend.pointer(self.columns) + offset, "stride": self.stride}

    def spans(self, *, edge: bool) -> list[tuple[int, int]]:
        """Return the ranges of the sites at rank boundaries (`edge`) or of all others; adjacent ranges are merged."""
        limits = (
            zip(self._interior, self.first[1:], strict=True) if edge else zip(self.first, self._interior, strict=False)
        )
        spans: list[tuple[int, int]] = []
        for begin, end in limits:
            if begin == end:
                continue
            if spans and spans[-1][1] == begin:
                begin = spans.pop()[0]
            spans.append((begin, end))
        return spans
