# SPDX-License-Identifier: BSD-3-Clause
"""Densities and wave speeds of elements or nodes, with their moduli and impedances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.kernels.registry.dg import Medium

Floats = npt.NDArray[np.float64]
#: Minimum c_p/c_s: below it the bulk modulus is negative.
MIN_CP = float(np.sqrt(4 / 3))


@dataclass(frozen=True)
class Material:
    """An isotropic medium: `density`, `cp`, `cs`, each (elements,) or, by node, (elements, nodes).

    `cs` is 0 in a fluid; an element is fluid at all of its nodes or at none. Any consistent units.
    """

    density: Floats
    cp: Floats
    cs: Floats

    @staticmethod
    def uniform(count: int, density: float, cp: float, cs: float = 0.0) -> Material:
        """Return one medium in `count` elements."""
        return Material(*(np.full(count, value, np.float64) for value in (density, cp, cs)))

    def __post_init__(self) -> None:
        """Raise CaseError for values that are not positive or finite, c_p too small for c_s, or different shapes."""
        for name in ("density", "cp", "cs"):
            values = np.asarray(getattr(self, name))
            if values.dtype.kind not in "fiu":
                raise CaseError(f"material: {name} must be an array of real numbers")
            object.__setattr__(self, name, values.astype(np.float64, copy=False))
        shapes = {np.shape(values) for values in (self.density, self.cp, self.cs)}
        if len(shapes) != 1 or len(next(iter(shapes))) not in (1, 2):
            raise CaseError(
                f"material: density, cp and cs have the shapes {np.shape(self.density)}, {np.shape(self.cp)}, "
                f"{np.shape(self.cs)}; expected (elements,) or (elements, nodes) for all"
            )
        for name, values, bound in (("density", self.density, "> 0"), ("cp", self.cp, "> 0"), ("cs", self.cs, ">= 0")):
            valid = np.isfinite(values) & ((values > 0) | ((bound == ">= 0") & (values == 0)))
            if not valid.all():
                element, value = self._first(~valid, values)
                raise CaseError(f"material: {name} = {value:g} in element {element}: must be finite and {bound}")
        weak = self.cp <= MIN_CP * self.cs
        if weak.any():
            element, cp = self._first(weak, self.cp)
            _, cs = self._first(weak, self.cs)
            raise CaseError(
                f"material: cp = {cp:g} with cs = {cs:g} in element {element}: cp must exceed sqrt(4/3) cs = "
                f"{MIN_CP * cs:g}, otherwise the bulk modulus is negative"
            )
        if self.by_node:
            mixed = (self.cs == 0).any(1) & (self.cs > 0).any(1)
            if mixed.any():
                raise CaseError(
                    f"material: cs is zero at some nodes of element {int(np.argmax(mixed))} and positive at others; "
                    "an element must be fluid or solid"
                )

    @staticmethod
    def _first(flags: npt.NDArray[np.bool_], values: Floats) -> tuple[int, float]:
        index = np.unravel_index(int(np.argmax(flags)), flags.shape)
        return int(index[0]), float(values[index])

    @property
    def by_node(self) -> bool:
        """Return whether the medium varies inside elements."""
        return self.density.ndim == 2

    @property
    def has_solid(self) -> bool:
        """Return whether any element or node is solid."""
        return bool((self.cs > 0).any())

    @property
    def mu(self) -> Floats:
        """Return the shear modulus."""
        return self.density * self.cs**2

    @property
    def longitudinal(self) -> Floats:
        """Return lambda + 2 mu, in a fluid the bulk modulus."""
        return self.density * self.cp**2

    def moduli(self, medium: str) -> Floats:
        """Return the coefficients of the kernels, (m, ...): kappa, 1/rho; or lambda, mu, 1/rho."""
        if medium == "acoustic":
            return np.stack([self.longitudinal, 1 / self.density])
        return np.stack([self.longitudinal - 2 * self.mu, self.mu, 1 / self.density])

    def impedances(self, medium: str) -> Floats:
        """Return Z_p or Z_p, Z_s, (kinds, ...)."""
        if medium == "acoustic":
            return np.stack([self.density * self.cp])
        return np.stack([self.density * self.cp, self.density * self.cs])


def medium_of(material: Material, medium: Medium | None, world: World) -> Medium:
    """Return the medium of the equations, by default acoustic if nothing is solid (collective).

    Raises CaseError for the acoustic medium with solid elements.
    """
    solid = any(world.allgather(material.has_solid))
    chosen_medium: Medium = medium or ("elastic" if solid else "acoustic")
    if chosen_medium == "acoustic" and solid:
        raise CaseError("material: cs > 0 in some elements requires the elastic medium")
    return chosen_medium
