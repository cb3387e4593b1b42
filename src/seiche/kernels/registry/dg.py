# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of the discontinuous Galerkin method for waves, of `kernels/dg/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from .dg_teams import LEAP_BLOCKS, LEAPS, NODES_AHEAD
from .dg_teams import TEAMS as TEAMS
from .dg_teams import Medium as Medium
from .dg_teams import Team as Team
from .spec import CPP_TYPE, KernelSpec, Members
from .spec import Real as Real

Position = Literal["first", "inner", "last"]
#: How much of a stage one kernel does: all; volume and faces, then integration; each of these apart.
Variant = Literal["fused", "fused-flux", "separate"]
#: What a half of a leapfrog step moves.
Half = Literal["velocities", "stresses"]

#: What the CPU table has, in words.
BUILT = "no wave kernel: they are compiled on first use"


@dataclass(frozen=True)
class FluxKernel:
    """A flux: name, C++ type, words of a trace per coupled component, coefficients of a face per kind of wave.

    A flux from outside says in which `header` its type is.
    """

    name: str
    type: str
    words: int
    coefficients: int
    header: str | None = None


UPWIND, CENTRAL = FluxKernel("upwind", "Upwind", 1, 3), FluxKernel("central", "Central", 2, 4)


@dataclass(frozen=True)
class Discretisation:
    """Which elements: medium, dimensions, nodes a direction, flux, precision, material by node, hanging faces."""

    medium: Medium
    dim: int
    nodes: int
    flux: FluxKernel = UPWIND
    real: Real = "float64"
    nodal: bool = False
    hanging: bool = False

    @property
    def fields(self) -> int:
        """Return the number of unknowns."""
        return self.dim + 1 if self.medium == "acoustic" else self.dim + self.dim * (self.dim + 1) // 2

    @property
    def waves(self) -> int:
        """Return the components of velocity that a face couples."""
        return 1 if self.medium == "acoustic" else self.dim

    @property
    def face_nodes(self) -> int:
        """Return the nodes of a face."""
        return int(self.nodes ** (self.dim - 1))

    @property
    def slot(self) -> int:
        """Return the words of a face's trace."""
        return self.flux.words * self.waves * self.face_nodes

    @property
    def type(self) -> str:
        """Return the C++ type."""
        words = (str(flag).lower() for flag in (self.nodal, self.hanging))
        medium = f"{self.medium.capitalize()}<{self.dim}>"
        return f"Elements<{medium},{self.nodes},{self.flux.type},{CPP_TYPE[self.real]},{','.join(words)}>"

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the header of a flux from outside."""
        return (self.flux.header,) if self.flux.header is not None else ()

    @property
    def members(self) -> Members:
        """Return the members of the C++ type."""
        names = ("in_slots", "out_slots", "scales", "moduli", "faces", "rows", "corrections")
        return (*((name, "ptr") for name in names), ("count", "int64"), ("derivative", (self.real, self.nodes**2)))


def words_a_stage(of: Discretisation, variant: Variant = "fused") -> float:
    """Return the words a node that an inner stage moves, every array once (theory/waves, section 8)."""
    faces = 2 * of.dim / of.nodes
    trace = faces * of.slot / of.face_nodes
    if variant == "fused":
        return 4 * of.fields + 2 * trace
    if variant == "fused-flux":
        return 7 * of.fields + 2 * trace
    changed = 2 if of.medium == "acoustic" else 3 * of.dim - 1  # unknowns that a face changes
    return 7 * of.fields + of.dim + 1 + 2 * trace + faces * 2 * (of.waves + changed)


def words_a_node(of: Discretisation, variant: Variant = "fused") -> float:
    """Return the words a node a stage, mean of the five stages (the first reads no register, the last writes none)."""
    return words_a_stage(of, variant) - 0.4 * of.fields


def words_of_bodies(of: Discretisation, mechanisms: int) -> float:
    """Return the words a node a stage (mean of five) that attenuation moves more than the fused-flux variant."""
    return 3.6 * mechanisms * (of.fields - of.dim)


def words_a_leap(of: Discretisation) -> float:
    """Return the words a node that a leapfrog step moves: what changes twice, and all once for the other half."""
    trace = 2 * of.dim / of.nodes * of.slot / of.face_nodes
    return 3 * of.fields + 2 * trace


def team_of(of: Discretisation) -> Team:
    """Return the fastest known team of a stage; found with the upwind flux, constant media and no hanging faces."""
    known = TEAMS[of.medium, of.real] if of.dim == 3 else {}
    return known.get(of.nodes) or Team(max(1, 128 // of.face_nodes))


def _sweep_members(of: Discretisation) -> Members:
    arrays = ("u", "k", "trace", "next_trace")
    return (
        ("on", of.members),
        *((name, "ptr") for name in arrays),
        ("reach", "int64"),
        *((name, of.real) for name in ("a", "b", "dt")),
    )


def fused_stage(of: Discretisation, position: Position, team: Team | None = None) -> KernelSpec:
    """One Runge-Kutta stage in one sweep, by the fastest known team or the one that is given."""
    return _sweep(of, position, team or team_of(of))


def rates(of: Discretisation) -> KernelSpec:
    """Volume and faces in one sweep: L(u) in place of the register."""
    return _sweep(of, "rates", team_of(of))


def _sweep(of: Discretisation, position: str, team: Team) -> KernelSpec:
    return _by_team(of, team, f"FusedStage<{of.type},Position::{position}", "dg/stage.hpp", _sweep_members(of))


def _by_team(of: Discretisation, team: Team, name: str, header: str, members: Members) -> KernelSpec:
    """Return a kernel of whole elements; its last template arguments are those of the team."""
    return KernelSpec(
        f"{name},{team.elements},{team.layers},{team.tuning}>",
        header,
        members,
        threads=of.face_nodes * team.elements * team.layers,
        blocks=team.blocks,
        max_registers=255,
        may_spill=True,
        team=True,
        parts=of.parts,
    )


def volume(of: Discretisation) -> KernelSpec:
    """The integrals over elements as contributions, for the separate variant."""
    team = team_of(of)
    members: Members = (("on", of.members), ("u", "ptr"), ("contributions", "ptr"), ("weights", (of.real, of.nodes)))
    return KernelSpec(
        f"Volume<{of.type},{team.elements},{team.layers}>",
        "dg/separate.hpp",
        members,
        threads=of.face_nodes * team.elements * team.layers,
        max_registers=255,
        may_spill=True,
        team=True,
        parts=of.parts,
    )


def face_flux(of: Discretisation) -> KernelSpec:
    """The integrals over faces, added to the contributions; an item an element."""
    arrays = ("u", "trace", "contributions")
    members: Members = (("on", of.members), *((name, "ptr") for name in arrays), ("weights", (of.real, of.nodes)))
    return _per_element(of, f"FaceFlux<{of.type}>", "dg/separate.hpp", members)


def integrate(of: Discretisation, position: Position, weighed: bool) -> KernelSpec:
    """State, register, traces from rates or contributions to be `weighed` by the inverse mass; spills on sm_80."""
    arrays = ("u", "k", "next_trace", "rates", "inverse_mass")
    members: Members = (
        ("on", of.members),
        *((name, "ptr") for name in arrays),
        *((name, of.real) for name in ("a", "b", "dt")),
    )
    functor = f"Integrate<{of.type},Position::{position},{str(weighed).lower()}>"
    spec = KernelSpec(functor, "dg/integrate.hpp", members, max_registers=255, team=True, may_spill=True)
    return replace(spec, parts=of.parts)


def integrate_attenuated(of: Discretisation, position: Position, mechanisms: int) -> KernelSpec:
    """State, register, traces and the bodies of attenuation, from rates."""
    arrays = ("u", "k", "next_trace", "rates", "memory", "memory_k", "shares")
    members: Members = (
        ("on", of.members),
        *((name, "ptr") for name in arrays),
        ("frequencies", (of.real, mechanisms)),
        *((name, of.real) for name in ("a", "b", "dt")),
    )
    functor = f"IntegrateAttenuated<{of.type},Position::{position},{mechanisms},{str(of.nodal).lower()}>"
    return KernelSpec(functor, "dg/attenuate.hpp", members, max_registers=255, team=True, parts=of.parts)


def damp_memory(of: Discretisation, mechanisms: int) -> KernelSpec:
    """The decay of the bodies of attenuation in an absorbing layer, an item an element of it."""
    members: Members = tuple((name, "ptr") for name in ("memory", "elements", "factors"))
    return _per_element(of, f"DampMemory<{of.type},{mechanisms}>", "dg/attenuate.hpp", members)


def leap_team(of: Discretisation) -> Team:
    """Return the team of both halves of a leapfrog step."""
    if of.dim == 2 or of.nodes not in LEAPS[of.medium]:
        return Team(max(1, 128 // of.face_nodes), early=False)
    elements, layers = LEAPS[of.medium][of.nodes]
    reach = max(1, NODES_AHEAD // (elements * int(of.nodes**of.dim)))
    return Team(elements, layers, reach, LEAP_BLOCKS.get((of.medium, of.real), {}).get(of.nodes, 0), early=False)


def leap(of: Discretisation, half: Half, team: Team | None = None) -> KernelSpec:
    """One half of a leapfrog step with the central flux, by the fastest known team or the one that is given."""
    team = team or leap_team(of)
    members: Members = (("on", of.members), ("u", "ptr"), ("trace", "ptr"), ("reach", "int64"), ("dt", of.real))
    return _by_team(of, team, f"Leap<{of.type},Half::{half}", "dg/leap.hpp", members)


def resist(of: Discretisation) -> KernelSpec:
    """The resistance of absorbing sides in leapfrog, an item an element at one."""
    members: Members = (("on", of.members), *((name, "ptr") for name in ("u", "trace", "elements", "factors")))
    return _per_element(of, f"Resist<{of.type}>", "dg/leap.hpp", members)


_MORTARS: Members = tuple(
    (name, "ptr") for name in ("sides", "small_slots", "large_slots", "faces", "halves", "projections")
)


def _per_element(of: Discretisation, functor: str, header: str, members: Members, *, alone: bool = False) -> KernelSpec:
    """Return a team kernel whose team handles a point, a face or an element; few of them, if they are `alone`."""
    nodes = of.face_nodes * of.nodes if alone else of.face_nodes
    threads = min(256, max(32, -(-nodes // 32) * 32))
    return KernelSpec(functor, header, members, threads=threads, max_registers=255, team=True, parts=of.parts)


def _mortar_kernel(of: Discretisation, name: str, results: tuple[str, ...]) -> KernelSpec:
    members: Members = (("mortars", _MORTARS), *((result, "ptr") for result in results))
    functor = f"{name}<{of.type},{str(of.nodal).lower()}>"
    return _per_element(of, functor, "dg/mortar.hpp", members)


def mortar_traces(of: Discretisation) -> KernelSpec:
    """Traces of the large sides of hanging faces, as their small neighbours want them."""
    return _mortar_kernel(of, "MortarTraces", ("u", "trace"))


def mortar_corrections(of: Discretisation) -> KernelSpec:
    """What the large sides of hanging faces add."""
    return _mortar_kernel(of, "MortarCorrections", ("u", "trace", "corrections"))


def write_traces(of: Discretisation) -> KernelSpec:
    """The traces of a whole state."""
    members: Members = (("on", of.members), ("u", "ptr"), ("trace", "ptr"))
    return _per_element(of, f"WriteTraces<{of.type}>", "dg/points.hpp", members)


def add_sources(of: Discretisation, stages: int = 5) -> KernelSpec:
    """Point sources, an item an element that has some, in a scheme of so many stages; one of two has no register."""
    arrays = ("elements", "first", "weights", "strengths", "amplitudes", "clock")
    members: Members = (
        ("on", of.members),
        *((name, "ptr") for name in ("u", "k", "next_trace", *arrays)),
        ("sources", "int64"),
        ("stage", "int32"),
        ("b", of.real),
        ("dt", of.real),
    )
    return _per_element(of, f"AddSources<{of.type},{stages}>", "dg/points.hpp", members, alone=True)


def record(of: Discretisation) -> KernelSpec:
    """The unknowns at receivers."""
    arrays = ("u", "elements", "weights", "clock", "samples")
    members: Members = (*((name, "ptr") for name in arrays), ("receivers", "int64"), ("every", "int32"))
    return _per_element(of, f"Record<{of.type}>", "dg/points.hpp", members)


def halve_traces(of: Discretisation, back: bool = False) -> KernelSpec:
    """Slots of traces into messages of half precision, or `back`; an item a slot."""
    names = ("messages", "slots", "trace") if back else ("trace", "slots", "messages")
    functor = f"{'Restore' if back else 'Halve'}Traces<{CPP_TYPE[of.real]},{of.slot}>"
    return _per_element(of, functor, "dg/ghosts.hpp", tuple((name, "ptr") for name in names))


def damp(of: Discretisation) -> KernelSpec:
    """The decay of an absorbing layer, an item an element of it."""
    members: Members = (("on", of.members), *((name, "ptr") for name in ("u", "trace", "elements", "factors")))
    return _per_element(of, f"Damp<{of.type}>", "dg/sponge.hpp", members)


def peak_motion(of: Discretisation) -> KernelSpec:
    """The largest velocities on a side of the mesh, an item an element on it."""
    members: Members = (*((name, "ptr") for name in ("u", "elements", "peaks")), ("axis", "int32"), ("side", "int32"))
    return _per_element(of, f"PeakMotion<{of.type}>", "dg/peak.hpp", members)


def advance_clock() -> KernelSpec:
    """The clock of sources and receivers."""
    return KernelSpec("AdvanceClock", "dg/points.hpp", (("clock", "ptr"),), threads=32)


def built_kernels() -> Iterator[KernelSpec]:
    """Yield the specialisations of the CPU table: none, so that the build stays short."""
    yield from ()


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of what is compiled on first use."""
    yield advance_clock()
    for back in (False, True):
        yield halve_traces(Discretisation("elastic", 3, 8, real="float32"), back)
    for medium in get_args(Medium):
        for real in get_args(Real):
            of = Discretisation(medium, 3, 8, real=real)
            for position in get_args(Position):
                yield fused_stage(of, position)
                yield integrate(of, position, weighed=position == "inner")
            yield from (rates(of), volume(of), face_flux(of), integrate_attenuated(of, "inner", 3))
            yield from (leap(Discretisation(medium, 3, 8, CENTRAL, real), half) for half in get_args(Half))
        for nodes in (2, 5, 10):
            yield fused_stage(Discretisation(medium, 3, nodes), "inner")
        hanging = Discretisation(medium, 3, 5, nodal=True, hanging=True)
        central = Discretisation(medium, 2, 5, flux=CENTRAL, hanging=True)
        for of in (hanging, central):
            yield fused_stage(of, "inner")
            yield from (rates(of), volume(of), face_flux(of), integrate(of, "inner", weighed=True))
            yield from (integrate_attenuated(of, "inner", 3), damp_memory(of, 3))
            if of.flux == CENTRAL:
                yield from (leap(of, "velocities"), leap(of, "stresses"), resist(of), add_sources(of, 2))
            yield from (mortar_traces(of), mortar_corrections(of), write_traces(of), add_sources(of), record(of))
            yield from (damp(of), peak_motion(of))
