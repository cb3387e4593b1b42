# SPDX-License-Identifier: BSD-3-Clause
"""Collision, rheology and force in the kernels of a rank: registry names and kernel arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.backend.base import Kernel
from seiche.domain.sites import SiteSet
from seiche.errors import CaseError
from seiche.flow.immersion import Contrast, Immersion
from seiche.flow.layout import Layout
from seiche.flow.model import (
    Bgk,
    CarreauYasuda,
    Casson,
    FlowModel,
    Mrt,
    Newtonian,
    PowerLaw,
    Precision,
    Regularised,
    ShearThinning,
)
from seiche.flow.velocity_set import CS2, VELOCITY_SETS
from seiche.kernels.registry.flow import INSIDE, PRECISIONS, observe


def relaxation_rates(viscosity: float, model: FlowModel) -> tuple[float, float]:
    """Return omega+ and omega- (theory/flow, eq. 8), which are equal for BGK and for the regularised collision."""
    even = 1.0 / (0.5 + viscosity / CS2)
    if isinstance(model.collision, Bgk | Regularised):
        return even, even
    return even, 1.0 / (0.5 + model.collision.magic / (1.0 / even - 0.5))


def viscosity_of(rates: Any) -> Any:
    """Return the viscosity for relaxation rates omega+, which are numbers or arrays on the host or a device."""
    return CS2 * (1.0 / rates - 0.5)


def check_model(sites: SiteSet, model: FlowModel, precision: Precision, ranks: int) -> None:
    """Raise CaseError for an empty geometry, too many ranks, an unsupported precision or invalid physics."""
    if not len(sites):
        raise CaseError("the geometry has no fluid site")
    if ranks > len(sites):
        raise CaseError(f"there are more ranks ({ranks}) than fluid sites ({len(sites)})")
    if (precision.compute, precision.storage) not in PRECISIONS:
        pairs = ", ".join("/".join(pair) for pair in PRECISIONS)
        raise CaseError(f"precision {precision.compute}/{precision.storage} (compute/storage) is not one of {pairs}")
    check_physics(model)


def check_physics(model: FlowModel) -> None:
    """Raise CaseError for an unknown velocity set or invalid parameters of the fluid or the collision."""
    if model.velocity_set not in VELOCITY_SETS:
        raise CaseError(f"velocity set {model.velocity_set!r} is not one of {', '.join(VELOCITY_SETS)}")
    rheology, collision = model.rheology, model.collision
    if isinstance(rheology, PowerLaw) and not 0 < rheology.min_shear_rate <= rheology.max_shear_rate < np.inf:
        rates = f"{rheology.min_shear_rate} to {rheology.max_shear_rate} (1/step)"
        raise CaseError(f"power law: shear rates {rates} must be positive and ascending")
    if isinstance(rheology, Casson) and not 0 <= rheology.yield_stress < np.inf:
        raise CaseError(
            f"Casson fluid: yield stress {rheology.yield_stress} (lattice units) is negative or not a number"
        )
    for viscosity in rheology.limits:
        if not (np.isfinite(viscosity) and viscosity > 0):
            raise CaseError(f"viscosity {viscosity} (lattice units) is not positive, so tau would be <= 1/2")
    if isinstance(collision, Bgk | Regularised):
        return
    if not collision.magic > 0:
        raise CaseError(f"{type(collision).__name__.upper()} magic parameter {collision.magic} is not positive")
    if isinstance(collision, Mrt):
        for name, rate in (("bulk", collision.bulk), ("even", collision.even)):
            if rate is not None and not 0 < rate < 2:
                raise CaseError(f"MRT {name} rate {rate} is not between 0 and 2")


def _law(fluid: ShearThinning) -> tuple[str, dict[str, float]]:
    """Return the registry name of a viscosity law and its kernel parameters."""
    if isinstance(fluid, CarreauYasuda):
        return "carreau-yasuda", {
            "viscosity_infinity": fluid.viscosity_infinity,
            "viscosity_range": fluid.viscosity_zero - fluid.viscosity_infinity,
            "relaxation_time": fluid.relaxation_time,
            "a": fluid.a,
            "exponent": (fluid.n - 1.0) / fluid.a,
        }
    if isinstance(fluid, Casson):
        return "casson", {
            "root_yield_stress": fluid.yield_stress**0.5,
            "root_viscosity_infinity": fluid.viscosity_infinity**0.5,
            "viscosity_zero": fluid.viscosity_zero,
        }
    return "power-law", {
        "consistency": fluid.consistency,
        "exponent": fluid.n - 1.0,
        "shear_lowest": fluid.min_shear_rate,
        "shear_highest": fluid.max_shear_rate,
    }


class Physics:
    """Relaxation and force policies of the kernels of one rank, with their arrays (relaxation rates, forces at sites).

    `relaxation` and `force` are registry names; together with `options` they select a kernel. `..._members` are kernel
    arguments. Kernels other than the sweep use `other_force`, for which there is no variant without a force.
    """

    def __init__(self, backend: Backend, layout: Layout, model: FlowModel, real: str) -> None:
        self._backend, self._layout, self._model, self._real = backend, layout, model, real
        self._omega: Array | None = None
        self._field: tuple[Array, ...] = ()
        self._contrast: Contrast | None = None
        self.lattice_options = {"velocity_set": model.velocity_set}
        name = {Mrt: "mrt", Regularised: "regularised"}.get(type(model.collision), "trt")
        self.options = {"collision": name, **self.lattice_options}
        self.relaxation, self.relaxation_members = self._relaxation()
        self.force = "none"
        self.set_body_force(model.body_force)

    def _relaxation(self) -> tuple[str, dict[str, Any]]:
        fluid, collision = self._model.rheology, self._model.collision
        if isinstance(fluid, Newtonian):
            name, (even, odd) = "constant", relaxation_rates(fluid.viscosity, self._model)
            members: dict[str, Any] = {"even": even, "odd": odd}
        else:
            name, law = _law(fluid)
            at_rest = relaxation_rates(fluid.limits[1], self._model)[0]
            self._omega = self._backend.zeros(self._layout.items, self._real)
            self._backend.assign(self._omega, np.full(self._layout.items, at_rest, self._real))
            magic = 0.0 if isinstance(collision, Bgk | Regularised) else collision.magic
            members = {"omega": self._omega, "law": law, "magic": magic}
        return name, self._with_moments(members)

    def _with_moments(self, members: dict[str, Any]) -> dict[str, Any]:
        """Return the members of a relaxation for the model's collision."""
        collision = self._model.collision
        if isinstance(collision, Mrt):
            return {"shear": members, "bulk": collision.bulk or 0.0, "even": collision.even or 0.0}
        return members

    @property
    def has_rates(self) -> bool:
        """Return whether every site has its own relaxation rate, which is part of the state."""
        return self._omega is not None

    @property
    def rates(self) -> Array | None:
        """Return the relaxation rates by item, on the device; None if all sites have the same rate."""
        return self._omega

    @property
    def even_rate(self) -> float | None:
        """Return the uniform relaxation rate of the shear stress; None if it differs between sites."""
        return self._uniform_rates()[0] if self._omega is None and self._contrast is None else None

    def _uniform_rates(self) -> tuple[float, ...]:
        """Return the relaxation rate of the shear stress in a Newtonian fluid.

        With a contrast, also those inside cells.
        """
        fluid = self._model.rheology
        assert isinstance(fluid, Newtonian)
        factors = (1.0,) if self._contrast is None else self._contrast.ratios
        return tuple(relaxation_rates(factor * fluid.viscosity, self._model)[0] for factor in factors)

    def even_rates(self) -> npt.NDArray[Any]:
        """Return the relaxation rates of the shear stress in the last step, (n_owned,)."""
        if self._omega is not None:
            return np.asarray(self._backend.download(self._omega)[self._layout.item])
        if self._contrast is not None:
            return np.array(self._uniform_rates())[self._contrast.inside()].astype(self._real)
        return np.full(len(self._layout.item), self.even_rate, self._real)

    def write_viscosity(self, out: Array, items: Array) -> None:
        """Write the viscosity in the last step at the layout `items` (n,) to `out` (n,), all on the device."""
        if self._omega is not None:
            out[...] = viscosity_of(self._omega[items])
            return
        outer, *inner = viscosity_of(np.array(self._uniform_rates(), self._real)).tolist()
        out[...] = outer
        if self._contrast is not None:
            indices = self._contrast.inside_on_device()
            for index, value in enumerate(inner, start=1):
                out[indices == index] = value

    def set_even_rates(self, rates: npt.NDArray[Any]) -> None:
        """Overwrite the relaxation rates of the shear stress, (n_owned,)."""
        omega = self._backend.download(self._omega)
        omega[self._layout.item] = rates
        self._backend.assign(self._omega, omega)

    def set_force(self, field: npt.NDArray[Any]) -> bool:
        """Add a force density (n_owned, 3) to that of the model; return whether other kernels are needed.

        Raises CaseError for another shape, for a value that is not finite, and with immersed bodies.
        """
        if self.force.startswith("immersed"):
            raise CaseError(
                "force field: not supported with immersed bodies, which already set the force of every site"
            )
        shape = (len(self._layout.item), 3)
        if field.shape != shape:
            raise CaseError(f"force field: expected an array of shape {shape}, found {field.shape}")
        if not np.isfinite(field).all():
            raise CaseError("force field: a value is not finite")
        changes = not self._field
        if changes:
            self._field = tuple(self._backend.zeros(self._layout.items, self._real) for _ in range(3))
            members = dict(zip(("gx", "gy", "gz"), self._field, strict=True))
            self.force, self.force_members = self.other_force, self.other_force_members = "site", members
        for axis, array in enumerate(self._field):
            host = np.zeros(self._layout.items, self._real)
            host[self._layout.item] = field[:, axis] + self._model.body_force[axis]
            self._backend.assign(array, host)
        return changes

    def set_body_force(self, force: tuple[float, float, float]) -> None:
        """Replace the body force density of the model; CaseError if a force field has been set."""
        if self._field:
            raise CaseError("body force: not supported together with a force field; add the force to the field")
        self._model = replace(self._model, body_force=force)
        if self.force.startswith("immersed"):
            self.force_members = self.other_force_members = {**self.force_members, "body": force}
        else:
            uniform = {"g": force}
            self.force, self.force_members = ("uniform", uniform) if any(force) else ("none", {})
            self.other_force, self.other_force_members = "uniform", uniform

    def observation(
        self, precision: tuple[Any, Any], phase: int, *, sites: Any, out: Array, stride: int, at_opening: bool = False
    ) -> tuple[Kernel, npt.NDArray[np.void]]:
        """Return the kernel that observes `sites` before a step of this phase, and its packed arguments.

        The kernel writes column c of site k to out[c stride + k]; `precision` is (compute, storage). With `at_opening`,
        the stress is that of the rules of openings (theory/flow, eq. 21).
        """
        name, layout = self._layout.kernel_name(phase), self._layout.members(phase)
        spec = observe(name, *precision, self.relaxation, self.other_force, at_opening=at_opening, **self.options)  # type: ignore[arg-type]
        kernel = self._backend.load(spec)
        policies = {"relaxation": self.relaxation_members, "force": self.other_force_members}
        return kernel, self._backend.pack(kernel, layout=layout, sites=sites, out=out, stride=stride, **policies)

    def immerse(self, immersion: Immersion) -> None:
        """Use the forces of `immersion` and its viscosities inside cells.

        Raises CaseError for a viscosity contrast that is not positive, or with a fluid that is not Newtonian.
        """
        self.force = self.other_force = immersion.force
        self.force_members = self.other_force_members = {**immersion.members, "body": self._model.body_force}
        contrast, fluid = immersion.contrast, self._model.rheology
        if contrast is None:
            return
        if not isinstance(fluid, Newtonian):
            raise CaseError(
                f"a viscosity contrast requires a Newtonian fluid outside the cells, not {type(fluid).__name__}"
            )
        for ratio in contrast.ratios:
            if not 0 < ratio < np.inf:
                raise CaseError(f"viscosity contrast {ratio} is not positive")
        even, odd = zip(*(relaxation_rates(r * fluid.viscosity, self._model) for r in contrast.ratios), strict=True)
        name = next(name for name, force in INSIDE.items() if force == immersion.force)
        self.relaxation = name if contrast.planes == 1 else f"{name} {contrast.planes}"
        members = {"inside": contrast.bits, "words": contrast.words, "slots": immersion.members["slots"]}
        self.relaxation_members = self._with_moments({**members, "even": even, "odd": odd})
        self._contrast = contrast
