# SPDX-License-Identifier: BSD-3-Clause
"""Rules for imposing a pressure at openings, in the table `PRESSURE_RULES`; see docs/howto/add-a-pressure-rule.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Backend
from seiche.errors import CaseError
from seiche.kernels.registry import KernelSpec
from seiche.kernels.registry import flow as registry

if TYPE_CHECKING:
    from seiche.flow.depths import Depths

#: Damping per step of the tangential velocity by the rule "plane"; 0.1 is unstable in a tilted tube at tau 0.51.
DAMPING = 0.05
#: Weight of the density of the site itself in the density of the rule "plane". Without it, a checkerboard mode in the
#: plane of the opening grows below tau 0.52; above 0.6, longer waves grow (theory/flow, section 8).
OWN_DENSITY = 0.2


@dataclass(frozen=True)
class RuleSites:
    """Sites of the openings with one rule, from which the rule derives its kernel arguments.

    `normals` (iolets, 3) point into the fluid; `count` is the number of sites. For a rule that needs depths, `depths`
    has the values of interior neighbours, and `rows` (count,) are the rows of the sites in it.
    """

    backend: Backend
    real: str
    normals: npt.NDArray[np.float64]
    count: int
    depths: Depths | None
    rows: npt.NDArray[np.int64]


@dataclass(frozen=True)
class PressureRule:
    """A rule for pressure openings.

    Attributes:
        name: the value of `scheme` in a case file.
        kernel: function of (layout, real, store, force, velocity_set=). The kernel has the members `layout` and `at`,
            those required by the flags below, and those that `bind` returns.
        observed: whether the kernel reads density, velocity and stress of its sites before the sweep (members
            `observed` and `stride`).
        depths: whether the kernel reads values of interior neighbours.
        force: whether the kernel reads the body force.
        normals: whether the kernel reads the normals of the openings.
        bind: function that returns additional kernel arguments, by name.
    """

    name: str
    kernel: Callable[..., KernelSpec]
    observed: bool = False
    depths: bool = False
    force: bool = False
    normals: bool = False
    bind: Callable[[RuleSites], Mapping[str, Any]] = lambda sites: {}

    def members(self, sites: RuleSites) -> dict[str, Any]:
        """Return the kernel arguments, except the layout, the force, observations and the values of the openings."""
        normals = {"normals": sites.backend.upload(sites.normals.astype(sites.real))} if self.normals else {}
        return {**normals, **self.bind(sites)}


def _of_plane(sites: RuleSites) -> Mapping[str, Any]:
    depths, upload = sites.depths, sites.backend.upload
    assert depths is not None
    return {
        "damping": DAMPING,
        "site_weight": OWN_DENSITY,
        "depths": depths.values,
        "density": upload(depths.density[sites.rows]),
        "pairs": upload(depths.pairs),
        "first_link": upload(depths.first_link[sites.rows]),
        "plane_weight": upload(depths.plane_weight[sites.rows].astype(sites.real)),
    }


#: Pressure rules by name, in execution order: that of Nash et al. 2014; anti-bounce-back with the stress, where the
#: pressure is imposed at the opening sites; the same rule with the pressure imposed in the opening plane.
PRESSURE_RULES = {
    rule.name: rule
    for rule in (
        PressureRule("nash", registry.nash_pressure, force=True, normals=True),
        PressureRule("anti-bounce-back", registry.anti_bounce_back_pressure, observed=True),
        PressureRule("plane", registry.plane_pressure, observed=True, depths=True, normals=True, bind=_of_plane),
    )
}


def rule_named(name: str) -> PressureRule:
    """Return the rule called `name`; CaseError for an unknown name."""
    if name not in PRESSURE_RULES:
        raise CaseError(f"pressure rule {name!r} is not one of {', '.join(PRESSURE_RULES)}")
    return PRESSURE_RULES[name]
