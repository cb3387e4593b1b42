# SPDX-License-Identifier: BSD-3-Clause
"""The end of a colour scale, which a source or another isolated peak must not determine."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

#: Quantiles of the absolute values at the end of the scale: of waves, of maps, in which a focus is small, and of nodes
#: of elements away from sources.
WAVES, MAPS, NODES = 0.995, 0.998, 0.995
#: The scale ends at the quantile only if the maximum is larger than this many times it.
_PEAK_RATIO = 2.0


def color_top(values: npt.NDArray[Any], quantile: float = WAVES) -> tuple[float, bool]:
    """Return the absolute value at the end of the colour scale, and whether larger values are clipped.

    It is the maximum of the finite values, or their `quantile` if the maximum is more than twice as large; 1 for zeros.
    """
    finite = np.abs(values[np.isfinite(values)])
    if not finite.size:
        return 1.0, False
    largest, usual = float(finite.max()), float(np.quantile(finite, quantile))
    is_clipped = 0.0 < _PEAK_RATIO * usual < largest
    return (usual if is_clipped else largest) or 1.0, is_clipped
