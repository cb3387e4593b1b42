# SPDX-License-Identifier: BSD-3-Clause
"""Laws of in-plane membrane elasticity, each a class in the table `MEMBRANE_LAWS`.

docs/howto/add-a-membrane-law.md explains how to add a law.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from seiche.kernels.registry.membrane import NEO_HOOKEAN, SKALAK, LawKernel

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MembraneLaw(ABC):
    """A law with shear modulus `shear` = G; its other parameters are dimensionless.

    Attributes:
        name: the value of `law` in a case file.
        kernel: its C++ type and the parameters of this type.
    """

    name: ClassVar[str]
    kernel: ClassVar[LawKernel]
    shear: float

    @property
    @abstractmethod
    def area_modulus(self) -> float:
        """Return K, the ratio of an isotropic tension to a small relative change of area."""

    @abstractmethod
    def energy(self, i1: Floats, i2: Floats) -> Floats:
        """Return the energy per stress-free area at the invariants I1 and I2 of the deformation."""

    def single_moduli(self) -> dict[str, MembraneLaw]:
        """Return laws with a single modulus each, by the name of the modulus, since each may limit the time step."""
        return {"shear modulus": self} if self.shear > 0 else {}


@dataclass(frozen=True)
class Skalak(MembraneLaw):
    """Skalak's law (theory/cells, eq. 3): shear modulus `shear` = G, and C = `area_ratio`, 0 or more.

    The area modulus is G (1 + 2 C). In other conventions, k_s = 3 G and k_a = 3 G C.
    """

    name, kernel = "skalak", SKALAK
    area_ratio: float = 10.0

    @property
    def area_modulus(self) -> float:
        """Return K, the ratio of an isotropic tension to a small relative change of area."""
        return self.shear * (1 + 2 * self.area_ratio)

    def energy(self, i1: Floats, i2: Floats) -> Floats:
        """Return the energy per area."""
        return np.asarray(self.shear / 4 * (i1**2 + 2 * i1 - 2 * i2 + self.area_ratio * i2**2))

    def single_moduli(self) -> dict[str, MembraneLaw]:
        """Return the law with each of its two moduli alone; it is linear in G and in G C."""
        laws: dict[str, MembraneLaw] = {"shear modulus": replace(self, area_ratio=0.0)} if self.shear > 0 else {}
        if self.shear * self.area_ratio > 0:
            laws["area ratio"] = Skalak(self.shear * 1e-6, self.area_ratio * 1e6)
        return laws


@dataclass(frozen=True)
class NeoHookean(MembraneLaw):
    """The neo-Hookean law (eq. 4) with shear modulus `shear` = G (a third of the surface Young's modulus)."""

    name, kernel = "neo-hookean", NEO_HOOKEAN

    @property
    def area_modulus(self) -> float:
        """Return K = 3 G."""
        return 3 * self.shear

    def energy(self, i1: Floats, i2: Floats) -> Floats:
        """Return the energy per area."""
        return np.asarray(self.shear / 2 * (i1 - 1 + 1 / (i2 + 1)))


#: Membrane laws by name.
MEMBRANE_LAWS: dict[str, type[MembraneLaw]] = {law.name: law for law in (Skalak, NeoHookean)}
