# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of the discontinuous Galerkin method for waves, `kernels/dg/`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, get_args

from .dg_teams import LEAP_BLOCKS, LEAPS, NODES_AHEAD
from .dg_teams import TEAMS as TEAMS
from .dg_teams import Medium as Medium
from .dg_teams import Team as Team
from .spec import CPP_TYPE, KernelSpec, Members, pointers, typed_members
from .spec import Real as Real

Position = Literal["first", "inner", "last"]
#: Positions of stages that keep the state before each stage, for the adjoint of a step.
Tape = Literal["tape_first", "tape", "tape_last"]
#: Division of a stage into kernels: one; volume and faces, then integration; three separate ones.
Variant = Literal["fused", "fused-flux", "separate"]
#: Unknowns that a half of a leapfrog step advances.
Half = Literal["velocities", "stresses"]

#: Description of the kernels in the CPU table.
BUILT = "those of wheels: five nodes, the upwind flux and the Runge-Kutta scheme of five stages"
#: Defaults of case files: nodes of an element along an axis, relaxation mechanisms of attenuation.
NODES, MECHANISMS = 5, 3


@dataclass(frozen=True)
class FluxKernel:
    """A flux: name, C++ type, words of a trace per coupled component, coefficients of a face per kind of wave.

    `header`: file of the C++ type if the flux belongs to another package.
    """

    name: str
    type: str
    words: int
    coefficients: int
    header: str | None = None


UPWIND, CENTRAL = FluxKernel("upwind", "Upwind", 1, 3), FluxKernel("central", "Central", 2, 4)


@dataclass(frozen=True)
class Discretisation:
    """The elements: medium, dimensions, nodes per direction, flux, precision, material by node, hanging faces."""

    medium: Medium
    dim: int
    nodes: int
    flux: FluxKernel = UPWIND
    real: Real = "float64"
    nodal: bool = False
    hanging: bool = False

    @property
    def fields(self) -> int:
        """Number of unknowns."""
        return self.dim + 1 if self.medium == "acoustic" else self.dim + self.dim * (self.dim + 1) // 2

    @property
    def waves(self) -> int:
        """Number of velocity components that a face couples."""
        return 1 if self.medium == "acoustic" else self.dim

    @property
    def face_nodes(self) -> int:
        """Number of nodes of a face."""
        return int(self.nodes ** (self.dim - 1))

    @property
    def slot(self) -> int:
        """Number of words of a face's trace."""
        return self.flux.words * self.waves * self.face_nodes

    @property
    def type(self) -> str:
        """C++ type."""
        words = (str(flag).lower() for flag in (self.nodal, self.hanging))
        medium = f"{self.medium.capitalize()}<{self.dim}>"
        return f"Elements<{medium},{self.nodes},{self.flux.type},{CPP_TYPE[self.real]},{','.join(words)}>"

    @property
    def parts(self) -> tuple[str, ...]:
        """Header of the flux if it belongs to another package."""
        return (self.flux.header,) if self.flux.header is not None else ()

    @property
    def members(self) -> Members:
        """Members of the C++ type."""
        arrays = pointers("in_slots out_slots scales moduli faces rows corrections")
        return (*arrays, ("count", "int64"), ("derivative", (self.real, self.nodes**2)))


def words_per_stage(scheme: Discretisation, variant: Variant = "fused") -> float:
    """Return the words per node that an inner stage moves, each array once (theory/waves, section 8)."""
    faces = 2 * scheme.dim / scheme.nodes
    trace = faces * scheme.slot / scheme.face_nodes
    if variant == "fused":
        return 4 * scheme.fields + 2 * trace
    if variant == "fused-flux":
        return 7 * scheme.fields + 2 * trace
    changed = 2 if scheme.medium == "acoustic" else 3 * scheme.dim - 1  # unknowns that a face changes
    return 7 * scheme.fields + scheme.dim + 1 + 2 * trace + faces * 2 * (scheme.waves + changed)


def words_per_node(scheme: Discretisation, variant: Variant = "fused") -> float:
    """Return the words per node and stage, mean of the five stages (first: no register read, last: none written)."""
    return words_per_stage(scheme, variant) - 0.4 * scheme.fields


def words_of_memory_variables(scheme: Discretisation, mechanisms: int) -> float:
    """Return the additional words per node and stage (mean of five) for attenuation with the fused-flux variant."""
    return 3.6 * mechanisms * (scheme.fields - scheme.dim)


def words_per_leap(scheme: Discretisation) -> float:
    """Return the words per node that a leapfrog step moves: advanced unknowns twice, all once for the other half."""
    trace = 2 * scheme.dim / scheme.nodes * scheme.slot / scheme.face_nodes
    return 3 * scheme.fields + 2 * trace


def team_of(scheme: Discretisation) -> Team:
    """Return the team shape measured to be fastest for a stage (upwind flux, constant media, no hanging faces)."""
    measured_teams = TEAMS[scheme.medium, scheme.real] if scheme.dim == 3 else {}
    return measured_teams.get(scheme.nodes) or Team(max(1, 128 // scheme.face_nodes))


def fused_stage(scheme: Discretisation, position: Position | Tape, team: Team | None = None) -> KernelSpec:
    """One Runge-Kutta stage in one sweep, by `team` or the fastest measured one."""
    return _sweep(scheme, position, team or team_of(scheme))


def rates(scheme: Discretisation) -> KernelSpec:
    """Volume and faces in one sweep: stores L(u) in place of the register."""
    return _sweep(scheme, "rates", team_of(scheme))


def _sweep(scheme: Discretisation, position: str, team: Team) -> KernelSpec:
    name = f"FusedStage<{scheme.type},Position::{position}"
    return by_team(scheme, team, name, "dg/stage.hpp", stage_members(scheme))


def stage_members(scheme: Discretisation) -> Members:
    """Return the members of a stage in one sweep."""
    arrays = pointers("u k trace next_trace next_u next_k")
    return (("scheme", scheme.members), *arrays, ("prefetch_distance", "int64"), *typed_members(scheme.real, "a b dt"))


def by_team(scheme: Discretisation, team: Team, name: str, header: str, members: Members) -> KernelSpec:
    """Return a kernel of whole elements; its last template arguments describe the team."""
    spec = _element_kernel(scheme, f"{name},{team.elements},{team.layers},{team.tuning}>", header, members)
    return replace(spec, threads=scheme.face_nodes * team.elements * team.layers, blocks=team.blocks, may_spill=True)


def _element_kernel(scheme: Discretisation, functor: str, header: str, members: Members) -> KernelSpec:
    return KernelSpec(functor, header, members, max_registers=255, team=True, parts=scheme.parts)


def volume(scheme: Discretisation) -> KernelSpec:
    """The volume integrals as contributions, for the separate variant."""
    team = team_of(scheme)
    members: Members = (
        ("scheme", scheme.members),
        *pointers("u contributions"),
        ("weights", (scheme.real, scheme.nodes)),
    )
    spec = _element_kernel(scheme, f"Volume<{scheme.type},{team.elements},{team.layers}>", "dg/separate.hpp", members)
    return replace(spec, threads=scheme.face_nodes * team.elements * team.layers, may_spill=True)


def face_flux(scheme: Discretisation) -> KernelSpec:
    """The face integrals, added to the contributions; one item per element."""
    members: Members = (
        ("scheme", scheme.members),
        *pointers("u trace contributions"),
        ("weights", (scheme.real, scheme.nodes)),
    )
    return per_element(scheme, f"FaceFlux<{scheme.type}>", "dg/separate.hpp", members)


def integrate(scheme: Discretisation, position: Position, weighed: bool) -> KernelSpec:
    """State, register and traces from rates, or from contributions `weighed` by the inverse mass; spills on sm_80."""
    arrays = pointers("u k next_trace rates inverse_mass")
    members: Members = (("scheme", scheme.members), *arrays, *typed_members(scheme.real, "a b dt"))
    functor = f"Integrate<{scheme.type},Position::{position},{str(weighed).lower()}>"
    return replace(_element_kernel(scheme, functor, "dg/integrate.hpp", members), may_spill=True)


def integrate_attenuated(scheme: Discretisation, position: Position, mechanisms: int) -> KernelSpec:
    """State, register, traces and memory variables of attenuation, from rates."""
    arrays = pointers("u k next_trace rates memory memory_k shares")
    frequencies = ("frequencies", (scheme.real, mechanisms))
    members: Members = (("scheme", scheme.members), *arrays, frequencies, *typed_members(scheme.real, "a b dt"))
    functor = f"IntegrateAttenuated<{scheme.type},Position::{position},{mechanisms},{str(scheme.nodal).lower()}>"
    return _element_kernel(scheme, functor, "dg/attenuate.hpp", members)


def damp_memory(scheme: Discretisation, mechanisms: int) -> KernelSpec:
    """The decay of memory variables in an absorbing layer; one item per element of the layer."""
    arrays = pointers("memory elements factors")
    return per_element(scheme, f"DampMemory<{scheme.type},{mechanisms}>", "dg/attenuate.hpp", arrays)


def leap_team(scheme: Discretisation) -> Team:
    """Return the team of both halves of a leapfrog step."""
    if scheme.dim == 2 or scheme.nodes not in LEAPS[scheme.medium]:
        return Team(max(1, 128 // scheme.face_nodes), early_load=False)
    elements, layers = LEAPS[scheme.medium][scheme.nodes]
    prefetch_distance = max(1, NODES_AHEAD // (elements * int(scheme.nodes**scheme.dim)))
    return Team(
        elements,
        layers,
        prefetch_distance,
        LEAP_BLOCKS.get((scheme.medium, scheme.real), {}).get(scheme.nodes, 0),
        early_load=False,
    )


def leap(scheme: Discretisation, half: Half, team: Team | None = None) -> KernelSpec:
    """One half of a leapfrog step with the central flux, by `team` or the fastest measured one."""
    members: Members = (
        ("scheme", scheme.members),
        *pointers("u trace"),
        ("prefetch_distance", "int64"),
        ("dt", scheme.real),
    )
    return by_team(scheme, team or leap_team(scheme), f"Leap<{scheme.type},Half::{half}", "dg/leap.hpp", members)


def absorbing_impedance(scheme: Discretisation) -> KernelSpec:
    """The impedance of absorbing sides in leapfrog; one item per adjacent element."""
    return per_element(scheme, f"Resist<{scheme.type}>", "dg/sponge.hpp", (("scheme", scheme.members), *_DAMPING))


_DAMPING = pointers("u trace elements factors")
MORTARS = pointers("sides fine_slots coarse_slots faces halves projections")


def per_element(
    scheme: Discretisation, functor: str, header: str, members: Members, *, thread_per_node: bool = False
) -> KernelSpec:
    """Return a kernel with one team per point, face or element.

    A team has a thread per node of a face or, with `thread_per_node`, of an element; the latter suits few items.
    """
    nodes = scheme.face_nodes * scheme.nodes if thread_per_node else scheme.face_nodes
    return replace(_element_kernel(scheme, functor, header, members), threads=min(256, max(32, -(-nodes // 32) * 32)))


def _mortar_kernel(scheme: Discretisation, name: str, arrays: str) -> KernelSpec:
    functor = f"{name}<{scheme.type},{str(scheme.nodal).lower()}>"
    return per_element(scheme, functor, "dg/mortar.hpp", (("mortars", MORTARS), *pointers(arrays)))


def mortar_traces(scheme: Discretisation) -> KernelSpec:
    """Traces of the coarse sides of hanging faces at the nodes of their small neighbours."""
    return _mortar_kernel(scheme, "MortarTraces", "u trace")


def mortar_corrections(scheme: Discretisation) -> KernelSpec:
    """Contributions of hanging faces to their coarse sides."""
    return _mortar_kernel(scheme, "MortarCorrections", "u trace corrections")


def write_traces(scheme: Discretisation) -> KernelSpec:
    """The traces of a whole state."""
    return per_element(
        scheme, f"WriteTraces<{scheme.type}>", "dg/points.hpp", (("scheme", scheme.members), *pointers("u trace"))
    )


def add_sources(scheme: Discretisation, stages: int = 5) -> KernelSpec:
    """Point sources, one item per element with sources, in a scheme with `stages` stages (with two: no register)."""
    arrays = pointers("u k next_trace elements first weights strengths amplitudes clock")
    integers: Members = (("sources", "int64"), ("stage", "int32"))
    members: Members = (("scheme", scheme.members), *arrays, *integers, *typed_members(scheme.real, "b dt"))
    return per_element(scheme, f"AddSources<{scheme.type},{stages}>", "dg/points.hpp", members, thread_per_node=True)


_COLUMNS: Members = (
    *pointers("tables origin clock delays"),
    ("length", "int64"),
    ("spacing", "float64"),
)


def add_incident(scheme: Discretisation, stages: int = 5) -> KernelSpec:
    """Incident waves of point sources at the faces of their boxes; one item per element; spills 28 bytes on sm_80."""
    arrays = pointers("u k next_trace elements first records factors outer")
    state: Members = (("scheme", scheme.members), ("mortars", MORTARS), ("at", _COLUMNS), *arrays)
    members: Members = (*state, ("stage", "int32"), ("offset", "float64"), *typed_members(scheme.real, "b dt"))
    return replace(
        per_element(scheme, f"AddIncident<{scheme.type},{stages}>", "dg/incident.hpp", members), may_spill=True
    )


def add_contrast(scheme: Discretisation, stages: int = 5) -> KernelSpec:
    """Incident waves where the medium of a box differs from that of the source; one item per element."""
    arrays = pointers("u k next_trace elements first tables factors")
    state: Members = (("scheme", scheme.members), ("at", _COLUMNS), *arrays)
    members: Members = (*state, ("stage", "int32"), ("offset", "float64"), *typed_members(scheme.real, "b dt"))
    return per_element(scheme, f"AddContrast<{scheme.type},{stages}>", "dg/incident.hpp", members, thread_per_node=True)


def incident_motion(scheme: Discretisation) -> KernelSpec:
    """The incident velocities at a side of the mesh; one item per element there that is in a box."""
    members: Members = (("at", _COLUMNS), *pointers("items first tables factors motion"), ("offset", "float64"))
    return per_element(scheme, f"IncidentMotion<{scheme.type}>", "dg/incident.hpp", members)


def record(scheme: Discretisation) -> KernelSpec:
    """The unknowns at receivers."""
    arrays = pointers("u elements weights clock samples")
    members: Members = (*arrays, ("receivers", "int64"), ("every", "int32"))
    return per_element(scheme, f"Record<{scheme.type}>", "dg/points.hpp", members)


def halve_traces(scheme: Discretisation, restore: bool = False) -> KernelSpec:
    """Conversion of traces to messages of half precision or, with `restore`, back; one item per slot."""
    functor = f"{'Restore' if restore else 'Halve'}Traces<{CPP_TYPE[scheme.real]},{scheme.slot}>"
    arrays = pointers("messages slots trace" if restore else "trace slots messages")
    return per_element(scheme, functor, "dg/ghosts.hpp", arrays)


def damp(scheme: Discretisation) -> KernelSpec:
    """The decay in an absorbing layer; one item per element of the layer."""
    return per_element(scheme, f"Damp<{scheme.type}>", "dg/sponge.hpp", (("scheme", scheme.members), *_DAMPING))


def peak_motion(scheme: Discretisation) -> KernelSpec:
    """The largest velocities on a side of the mesh; one item per adjacent element."""
    members: Members = (*pointers("u elements peaks motion"), *typed_members("int32", "axis side moves"))
    return per_element(scheme, f"PeakMotion<{scheme.type}>", "dg/peak.hpp", members)


def advance_clock() -> KernelSpec:
    """The clock of sources and receivers."""
    return KernelSpec("AdvanceClock", "dg/points.hpp", pointers("clock"), threads=32)


def default_kernels() -> Iterator[KernelSpec]:
    """Yield the kernels of meshes with the default number of nodes, the default flux and the default scheme."""
    yield advance_clock()
    choices = product(get_args(Medium), (2, 3), get_args(Real), (False, True), (False, True))
    for medium, dim, real, nodal, hanging in choices:
        scheme = Discretisation(medium, dim, NODES, UPWIND, real, nodal, hanging)
        for position in get_args(Position):
            yield from (fused_stage(scheme, position), integrate_attenuated(scheme, position, MECHANISMS))
        yield from (rates(scheme), damp_memory(scheme, MECHANISMS), damp(scheme), peak_motion(scheme))
        yield from (write_traces(scheme), add_sources(scheme), record(scheme))
        yield from (add_incident(scheme), add_contrast(scheme), incident_motion(scheme))
        if hanging:
            yield from (mortar_traces(scheme), mortar_corrections(scheme))


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of kernels compiled on first use."""
    yield advance_clock()
    for restore in (False, True):
        yield halve_traces(Discretisation("elastic", 3, 8, real="float32"), restore)
    for medium in get_args(Medium):
        for real in get_args(Real):
            scheme = Discretisation(medium, 3, 8, real=real)
            for position in get_args(Position):
                yield fused_stage(scheme, position)
                yield integrate(scheme, position, weighed=position == "inner")
            yield from (rates(scheme), volume(scheme), face_flux(scheme), integrate_attenuated(scheme, "inner", 3))
            yield from (leap(Discretisation(medium, 3, 8, CENTRAL, real), half) for half in get_args(Half))
        for nodes in (2, 5, 10):
            yield fused_stage(Discretisation(medium, 3, nodes), "inner")
        hanging = Discretisation(medium, 3, 5, nodal=True, hanging=True)
        central = Discretisation(medium, 2, 5, flux=CENTRAL, hanging=True)
        for scheme in (hanging, central):
            yield fused_stage(scheme, "inner")
            yield from (rates(scheme), volume(scheme), face_flux(scheme), integrate(scheme, "inner", weighed=True))
            yield from (integrate_attenuated(scheme, "inner", 3), damp_memory(scheme, 3))
            if scheme.flux == CENTRAL:
                yield from (
                    leap(scheme, "velocities"),
                    leap(scheme, "stresses"),
                    absorbing_impedance(scheme),
                    add_sources(scheme, 2),
                )
            yield from (
                mortar_traces(scheme),
                mortar_corrections(scheme),
                write_traces(scheme),
                add_sources(scheme),
                record(scheme),
            )
            yield from (damp(scheme), peak_motion(scheme))
        for scheme in (hanging, Discretisation(medium, 3, 8, real="float32")):
            yield from (add_incident(scheme), add_contrast(scheme), incident_motion(scheme))
        yield from (add_incident(Discretisation(medium, 3, 5, CENTRAL), 2), add_contrast(hanging, 2))
