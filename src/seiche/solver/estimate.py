# SPDX-License-Identifier: BSD-3-Clause
"""Estimates: the effects of the discretisation on a case, as numbers with bounds, remedies and sources of the bounds.

Every kind of case returns estimates before a run, and further ones of the current state. `seiche check`, the run and
its summary present them in the same way (docs/howto/add-an-estimate.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

#: Relative excess of a bound that is attributed to rounding.
_ROUNDING = 1e-9


#: Keys of attributes in the summary that differ from their names.
_SUMMARY_KEYS = {"lower_bound": "least", "upper_bound": "greatest"}


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One number about accuracy, stability or resolution, for the worst part of a case.

    Attributes:
        name: the quantity, such as "Mach number".
        value: the number; nan if it is undefined.
        unit: unit of value and bounds, "" for a ratio.
        where: the part of the case, such as `iolet["inlet"]`; "" for the whole case.
        lower_bound, upper_bound: bounds, or None.
        effect: the effect of a violated bound.
        remedy: the change that avoids a violation.
        source: the page below docs and the heading that justify the bound, such as "theory/flow.md#10-units".
    """

    name: str
    value: float
    unit: str = ""
    where: str = ""
    lower_bound: float | None = None
    upper_bound: float | None = None
    effect: str = ""
    remedy: str = ""
    source: str = ""

    @classmethod
    def lowest(cls, values: Mapping[str, float], **attributes: Any) -> Estimate:
        """Return the estimate of the lowest of `values`, by parts of the case (`where`), with further attributes."""
        where = min(values, key=values.__getitem__)
        return cls(value=values[where], where=where, **attributes)

    @property
    def violated(self) -> bool:
        """Return whether the value violates a bound; nan violates every bound."""
        low = -math.inf if self.lower_bound is None else self.lower_bound - abs(self.lower_bound) * _ROUNDING
        high = math.inf if self.upper_bound is None else self.upper_bound + abs(self.upper_bound) * _ROUNDING
        return (self.lower_bound is not None or self.upper_bound is not None) and not low <= self.value <= high

    @property
    def passed(self) -> bool:
        """Return `violated`, under its former name."""
        return self.violated

    @property
    def row(self) -> tuple[str, str]:
        """Return name and value with the bounds, as text."""
        named_bounds = (("at least", self.lower_bound), ("at most", self.upper_bound))
        bound_text = ", ".join(f"{relation} {bound:.4g}" for relation, bound in named_bounds if bound is not None)
        name = f"{self.where}: {self.name}" if self.where else self.name
        return name, self._with_unit(self.value) + (f" ({bound_text})" if bound_text else "")

    @property
    def warning(self) -> str | None:
        """Return one line with value, bound, effect and remedy if a bound is violated, otherwise None."""
        if not self.violated:
            return None
        is_below = self.lower_bound is not None and not self.value >= self.lower_bound
        bound = self.lower_bound if is_below else self.upper_bound
        location = f"{self.where}: " if self.where else ""
        text = f"{location}{self.name} {self._with_unit(self.value)} is {'below' if is_below else 'above'} {bound:.4g}"
        text += f": {self.effect}" if self.effect else ""
        return text + (f"; {self.remedy}" if self.remedy else "")

    def _with_unit(self, value: float) -> str:
        return f"{value:.4g}" + (f" {self.unit}" if self.unit else "")

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes, by their keys in the summary, and the warning."""
        values = {_SUMMARY_KEYS.get(name, name): value for name, value in asdict(self).items()}
        return {**values, "warning": self.warning}


def warnings_of(estimates: Iterable[Estimate]) -> list[str]:
    """Return one line for each violated bound."""
    return [line for estimate in estimates if (line := estimate.warning) is not None]
