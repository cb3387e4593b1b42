# SPDX-License-Identifier: BSD-3-Clause
"""The rules by which a pressure is imposed at openings: one object each, in the table `PRESSURE_RULES`.

How to add one: docs/howto/add-a-pressure-rule.md.
"""

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

#: How fast a pressure that holds in its plane stops what moves along the plane, a part a step; above 1/2 it may grow.
DAMPING = 0.2


@dataclass(frozen=True)
class RuleSites:
    """The sites of a group of openings of one rule, from which it makes the arguments of its kernel.

    `normals` (iolets, 3) into the fluid; `count` sites; of a rule with depths `depths` has what is known of sites
    further inside, and `rows` (count,) the places of these sites there.
    """

    backend: Backend
    real: str
    normals: npt.NDArray[np.float64]
    count: int
    depths: Depths | None
    rows: npt.NDArray[np.int64]


def _nothing(sites: RuleSites) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class PressureRule:
    """A rule for pressure openings.

    Attributes:
        name: the value of `scheme` in a case file.
        kernel: of (layout, real, store, force, velocity_set=); its members are `layout`, `at`, those that follow from
            what the rule needs, and those that `bind` returns.
        observed: whether it reads density, velocity and stress of its sites before the sweep: `observed`, `stride`.
        depths: whether it needs sites further inside.
        force: whether it reads the body force.
        normals: whether it reads the normals of the openings.
        bind: more arguments of the kernel, by name.
    """

    name: str
    kernel: Callable[..., KernelSpec]
    observed: bool = False
    depths: bool = False
    force: bool = False
    normals: bool = False
    bind: Callable[[RuleSites], Mapping[str, Any]] = _nothing

    def members(self, sites: RuleSites) -> dict[str, Any]:
        """Return the arguments of the kernel beside layout, force and the values of the openings."""
        members: dict[str, Any] = {}
        if self.normals:
            members["normals"] = sites.backend.upload(sites.normals.astype(sites.real))
        if self.observed:
            members |= {"observed": sites.backend.zeros(11 * sites.count, sites.real), "stride": sites.count}
        return {**members, **self.bind(sites)}


def _of_plane(sites: RuleSites) -> Mapping[str, Any]:
    depths, upload = sites.depths, sites.backend.upload
    assert depths is not None
    return {
        "damping": DAMPING,
        "depths": depths.values,
        "density": upload(depths.density[sites.rows]),
        "pairs": upload(depths.pairs),
        "first_link": upload(depths.first_link[sites.rows]),
        "share": upload(depths.share[sites.rows].astype(sites.real)),
    }


#: By name, in the order in which they act: Nash et al. 2014; anti-bounce-back with the stress, for the pressure at the
#: sites beside the opening; the same for the pressure in its plane.
PRESSURE_RULES = {
    rule.name: rule
    for rule in (
        PressureRule("nash", registry.nash_pressure, force=True, normals=True),
        PressureRule("anti-bounce-back", registry.anti_bounce_back_pressure, observed=True),
        PressureRule("plane", registry.plane_pressure, observed=True, depths=True, normals=True, bind=_of_plane),
    )
}


def rule_named(name: str) -> PressureRule:
    """Return the rule `name`.

    Raises:
        CaseError: there is none.
    """
    if name not in PRESSURE_RULES:
        raise CaseError(f"pressure rule {name!r} is not one of {', '.join(PRESSURE_RULES)}")
    return PRESSURE_RULES[name]
