# SPDX-License-Identifier: BSD-3-Clause
"""Iolets of one rank: their sites, link weights and time-dependent values.

The host computes the values for a block of steps, and the device indexes them by a clock. Any function of time is
therefore possible, and steps can be captured into a graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.sites import LinkKind
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.depths import Depths
from seiche.flow.layout import Layout
from seiche.flow.model import Iolet, PressureIolet, VelocityIolet, WindkesselIolet
from seiche.flow.observed_sites import ObservedSites
from seiche.flow.pressure_rules import PRESSURE_RULES, PressureRule, RuleSites, rule_named
from seiche.flow.profiles import parabola, womersley
from seiche.flow.region import Region
from seiche.flow.section import values_at
from seiche.flow.windkessel import Windkessels, ramp_factor

#: Number of steps whose values are uploaded together; a multiple of the number of steps in a graph.
BLOCK = 1024

Floats = npt.NDArray[np.float64]
#: The weights of every velocity set are integer multiples of this.
_WEIGHT_UNIT = 1.0 / 216.0


def density_excess(iolet: PressureIolet, time: Floats) -> Floats:
    """Return rho - 1 at `time` (in steps)."""
    if iolet.table is not None:
        rho = iolet.table.at(time)
    else:
        rho = iolet.mean + iolet.amplitude * np.cos(2.0 * np.pi * time / iolet.period + iolet.phase)
    if iolet.ramp > 0:
        rho = iolet.ramp_from + (rho - iolet.ramp_from) * ramp_factor(iolet.ramp, time)
    return np.asarray(rho - 1.0)


def mode_values(iolet: VelocityIolet, time: Floats) -> Floats:
    """Return the mode amplitudes at `time`, (n_times, 1 + 2 n_harmonics): mean, then Re and Im of each harmonic."""
    columns = [np.full(len(time), iolet.mean) if iolet.table is None else iolet.table.at(time)]
    for k, harmonic in enumerate(iolet.harmonics, start=1):
        phasor = harmonic * np.exp(2j * np.pi * k * time / iolet.period)
        columns += [phasor.real, phasor.imag]
    return np.asarray(np.stack(columns, axis=1) * ramp_factor(iolet.ramp, time)[:, None])


def mode_profiles(iolet: VelocityIolet, radius: float, r: Floats) -> Floats:
    """Return the mode profiles (n, modes) at distances `r` (n,) from the axis; `radius` and `r` in sites."""
    columns = [parabola(r / radius)]
    for k in range(1, len(iolet.harmonics) + 1):
        alpha = radius * math.sqrt(2.0 * np.pi * k / iolet.period / iolet.viscosity)
        profile = womersley(r / radius, alpha)
        columns += [profile.real, -profile.imag]
    return np.stack(columns, axis=1)


@dataclass
class IoletGroup:
    """Sites of the iolets with the same rule on this rank, on the device; Windkessel outlets form separate groups.

    `rule` is None for velocity iolets. `iolets` are the iolet numbers in the site set; `site_iolet` (m,) indexes
    `iolets`. `values` has one row per step; it is None if the values are computed on the device. The first `interior`
    sites need no data from other ranks.
    """

    rule: PressureRule | None
    iolets: list[int]
    site_iolet: npt.NDArray[np.int32]
    inflow: Array
    values: Array | None
    members: dict[str, Any]
    interior: int

    def __len__(self) -> int:
        """Return the number of sites."""
        return len(self.site_iolet)

    def count(self, edge: bool) -> int:
        """Return the number of sites at rank boundaries (`edge`) or of all other sites."""
        return len(self) - self.interior if edge else self.interior


class Iolets:
    """All iolets of one rank."""

    def __init__(
        self,
        backend: Backend,
        layout: Layout,
        region: Region,
        model: Sequence[Iolet],
        *,
        real: str,
        world: World | None = None,
        transport: str = "auto",
    ) -> None:
        """Find the sites and links of each iolet.

        Raises CaseError if the numbers of planes and conditions differ, if a required radius or profile value is
        missing, if a site touches two iolets, or if the elements of a Windkessel are invalid.
        """
        if len(region.sites.iolets) != len(model):
            raise CaseError(
                f"{len(model)} iolet conditions for {len(region.sites.iolets)} iolets of the geometry; expected one "
                "for each"
            )
        self._backend, self._real, self._model = backend, real, list(model)
        self.clock = backend.zeros(1, np.int64)
        self._block_start, self._row = 0, BLOCK
        links, world = _IoletLinks(region), world or World.serial()
        #: Rows of the region with links through an iolet, and the numbers of their iolets.
        self.sites = (links.row, links.iolet)
        self.windkessels = self._windkessels(world, links)
        self.depths: Depths | None = None
        self._depth_rows = np.zeros(0, np.int64)
        rules = {k: rule_named(c.scheme) for k, c in enumerate(self._model) if not isinstance(c, VelocityIolet)}
        chosen = [k for k, rule in rules.items() if rule.depths]
        if chosen:
            rows = np.flatnonzero(np.isin(links.iolet, chosen))
            openings = (links.row[rows], links.iolet[rows], links.mask[rows])
            precision = (real, layout.boundary_precision)
            self.depths = Depths(
                backend, layout, region, openings, precision=precision, world=world, transport=transport
            )
            self._depth_rows = rows
        self.groups: list[IoletGroup] = []
        self._observed_parts = [self.depths.observed_sites] if self.depths is not None else []
        part = len(self._observed_parts)
        for kind in (PressureIolet, WindkesselIolet):
            for rule in PRESSURE_RULES.values():
                chosen = [k for k in self._iolets_of(kind) if rules[k] is rule]
                self._add_group(rule, chosen, kind is PressureIolet, layout, links)
        self._add_group(None, self._iolets_of(VelocityIolet), True, layout, links)
        self.observed = ObservedSites(backend, real, self._observed_parts)
        for group in self.groups:
            if group.rule is not None and group.rule.observed:
                group.members |= self.observed.members(part)
                part += 1

    def _windkessels(self, world: World, links: _IoletLinks) -> Windkessels | None:
        lattice = links.region.velocity_set
        outlets = {links.planes[k].name: c for k, c in enumerate(self._model) if isinstance(c, WindkesselIolet)}
        if not outlets:
            return None
        if len(outlets) != len(self._iolets_of(WindkesselIolet)):
            raise CaseError(f"two Windkessel outlets have the same name; the names are {', '.join(sorted(outlets))}")
        units = np.rint(lattice.weights[1:] / _WEIGHT_UNIT).astype(np.int64)
        flags = (links.mask[:, None] >> np.arange(1, lattice.Q, dtype=np.uint32)) & 1
        weight = np.zeros(len(self._model), np.int64)
        np.add.at(weight, links.iolet, flags @ units)
        total = world.allreduce_sum(weight)
        responses = [2.0 * _WEIGHT_UNIT * float(total[k]) for k in self._iolets_of(WindkesselIolet)]
        return Windkessels(self._backend, world, self.clock, outlets, responses, real=self._real, block=BLOCK)

    def _iolets_of(self, kind: type[Iolet]) -> list[int]:
        return [k for k, condition in enumerate(self._model) if isinstance(condition, kind)]

    def _add_group(
        self, rule: PressureRule | None, chosen: list[int], timed: bool, layout: Layout, links: _IoletLinks
    ) -> None:
        """Add a group for the iolets `chosen` if they have sites on this rank.

        `timed` groups have one value per step.
        """
        rows = np.flatnonzero(np.isin(links.iolet, chosen))
        if not len(rows):
            return
        rows = rows[np.argsort(layout.item[links.row[rows]], kind="stable")]
        items = layout.item[links.row[rows]]
        interior = int(np.count_nonzero(items < layout.interior))
        # Windkessel outlets are numbered across all schemes, like their circuits.
        chosen = chosen if timed else self._iolets_of(WindkesselIolet)
        position = np.searchsorted(chosen, links.iolet[rows]).astype(np.int32)
        upload, real = self._backend.upload, self._real
        inflow = self._backend.zeros(len(rows), real)
        width = sum(self._modes(k) for k in chosen)
        values = self._backend.zeros((BLOCK, width), real) if timed else None
        site_members = {
            "sites": upload(items),
            "links": upload(links.mask[rows]),
            "iolet": upload(position),
            "inflow": inflow,
            "values": values,
            "clock": self.clock,
            "value_count": width,
        }
        if self.windkessels is not None and not timed:
            site_members |= {"values": self.windkessels.values, "value_count": 0}
        members = {"at": site_members, **self._rule_members(rule, chosen, links, rows)}
        if rule is not None and rule.observed:
            self._observed_parts.append((items, interior))
        self.groups.append(IoletGroup(rule, chosen, position, inflow, values, members, interior))

    def _rule_members(
        self, rule: PressureRule | None, chosen: list[int], links: _IoletLinks, rows: npt.NDArray[np.int64]
    ) -> dict[str, Any]:
        """Return the kernel members of a rule, without the values, for the rows `rows` of `links`."""
        upload, real = self._backend.upload, self._real
        if rule is None:
            weights, first_link = self._weights(links, rows)
            first_value = np.cumsum([0] + [self._modes(k) for k in chosen[:-1]])
            return {
                "weights": upload(weights.astype(real)),
                "first_link": upload(first_link.astype(np.int32)),
                "first_value": upload(first_value.astype(np.int32)),
                "modes": weights.shape[1],
            }
        normals = np.array([links.planes[k].normal for k in chosen])
        depth_rows = np.searchsorted(self._depth_rows, rows)
        return rule.members(RuleSites(self._backend, real, normals, len(rows), self.depths, depth_rows))

    def _modes(self, iolet: int) -> int:
        condition = self._model[iolet]
        return 1 + 2 * len(condition.harmonics) if isinstance(condition, VelocityIolet) else 1

    def _weights(self, links: _IoletLinks, rows: npt.NDArray[np.int64]) -> tuple[Floats, npt.NDArray[np.int64]]:
        """Return -6 w_q (n.c_q) profile_mode(link midpoint), (links, modes), and the first link of each site."""
        region, planes = links.region, links.planes
        spacing, lattice = region.sites.spacing, region.velocity_set
        flags = (links.mask[rows, None] >> np.arange(1, lattice.Q, dtype=np.uint32)) & 1
        site, direction = np.nonzero(flags)
        q = direction + 1
        coords = region.coords_of(links.row[rows][site])
        midpoints = coords + 0.5 * lattice.vectors[q]
        iolet_indices = np.unique(links.iolet[rows])
        weights = np.zeros((len(q), max(self._modes(int(k)) for k in iolet_indices)))
        for iolet in iolet_indices:
            is_selected = links.iolet[rows][site] == iolet
            plane, condition = planes[iolet], self._model[iolet]
            assert isinstance(condition, VelocityIolet)
            normal = np.array(plane.normal)
            factor = -6.0 * lattice.weights[q[is_selected]] * (lattice.vectors[q[is_selected]] @ normal)
            if condition.profile is not None:
                profile = factor * values_at(condition.profile, coords[is_selected], plane.name)
                weights[is_selected, : self._modes(int(iolet))] = profile[:, None]
                continue
            if plane.radius is None:
                raise CaseError(f"iolet {plane.name!r}: a velocity profile requires a radius")
            offset = midpoints[is_selected] - (np.array(plane.center) - np.array(region.sites.origin)) / spacing
            radial = offset - (offset @ normal)[:, None] * normal
            profiles = mode_profiles(condition, plane.radius / spacing, np.sqrt(np.sum(radial**2, axis=1)))
            weights[is_selected, : profiles.shape[1]] = factor[:, None] * profiles
        return weights, np.searchsorted(site, np.arange(len(rows)))

    def set_condition(self, number: int, condition: Iolet) -> None:
        """Replace the condition of iolet `number` from the next step on; CaseError if it is invalid."""
        if isinstance(condition, WindkesselIolet) and self.windkessels is not None:
            self.windkessels.set_outlet(self._iolets_of(WindkesselIolet).index(number), condition)
        self._model[number] = condition
        self._row = BLOCK  # forces an upload, because the uploaded values of later steps are obsolete

    def prepare(self, step: int, steps: int) -> None:
        """Upload the values of the next `steps` steps (at most `BLOCK`), evaluated at t + 1/2."""
        available = self._row + steps <= BLOCK and self._block_start + self._row == step
        if available or not (self.groups or self.windkessels):
            self._row += steps
            return
        time = np.arange(BLOCK, dtype=np.float64) + (step + 0.5)
        for group in self.groups:
            if group.values is None:
                continue
            columns = []
            for k in group.iolets:
                condition = self._model[k]
                if isinstance(condition, PressureIolet):
                    columns.append(density_excess(condition, time)[:, None])
                elif isinstance(condition, VelocityIolet):
                    columns.append(mode_values(condition, time))
            self._backend.assign(group.values, np.concatenate(columns, axis=1).astype(self._real))
        if self.windkessels is not None:
            self.windkessels.prepare(time)
        self._backend.assign(self.clock, np.zeros(1, np.int64))
        self._block_start, self._row = step, steps

    def inflow(self, count: int, by_site: Sequence[npt.NDArray[Any]]) -> Floats:
        """Return the mass that entered through each of `count` iolets on this rank.

        `by_site` has the inflows of each group.
        """
        total = np.zeros(count)
        for group, mass in zip(self.groups, by_site, strict=True):
            total[group.iolets] += np.bincount(group.site_iolet, mass.astype(np.float64), minlength=len(group.iolets))
        return total


class _IoletLinks:
    """Owned sites with links through an iolet: `row` in the region, link `mask` (bit q), `iolet` number; all (m,)."""

    def __init__(self, region: Region) -> None:
        self.region, self.planes = region, region.sites.iolets
        columns = region.velocity_set.link_rows
        kinds = region.sites.link_kind[region.boundary_rows][:, columns]
        iolet_indices = region.sites.link_iolet[region.boundary_rows][:, columns]
        through = (kinds == LinkKind.INLET) | (kinds == LinkKind.OUTLET)
        has_iolet_link = through.any(axis=1)
        self.row = region.boundary_sites[has_iolet_link]
        flags, iolet_indices = through[has_iolet_link], iolet_indices[has_iolet_link]
        bits = np.arange(1, region.velocity_set.Q, dtype=np.uint32)
        self.mask = (flags.astype(np.uint32) << bits).sum(axis=1, dtype=np.uint32)
        self.iolet = (
            np.where(flags, iolet_indices, -1).max(axis=1).astype(np.int64) if len(flags) else np.zeros(0, np.int64)
        )
        first_iolet = np.where(flags, iolet_indices, np.iinfo(np.int16).max).min(axis=1) if len(flags) else self.iolet
        conflicting = np.flatnonzero(first_iolet != self.iolet)
        if len(conflicting):
            coordinates = region.coords_of(self.row[conflicting[:1]])[0].tolist()
            names = [
                region.sites.iolets[k].name for k in (int(first_iolet[conflicting[0]]), int(self.iolet[conflicting[0]]))
            ]
            raise CaseError(
                f"the site at {coordinates} touches two iolets, {names[0]!r} and {names[1]!r}; move them apart"
            )
