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
from .spec import CPP_TYPE, KernelSpec, Members, numbers, pointers
from .spec import Real as Real

Position = Literal["first", "inner", "last"]
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


def words_per_stage(of: Discretisation, variant: Variant = "fused") -> float:
    """Return the words per node that an inner stage moves, each array once (theory/waves, section 8)."""
    faces = 2 * of.dim / of.nodes
    trace = faces * of.slot / of.face_nodes
    if variant == "fused":
        return 4 * of.fields + 2 * trace
    if variant == "fused-flux":
        return 7 * of.fields + 2 * trace
    changed = 2 if of.medium == "acoustic" else 3 * of.dim - 1  # unknowns that a face changes
    return 7 * of.fields + of.dim + 1 + 2 * trace + faces * 2 * (of.waves + changed)


def words_per_node(of: Discretisation, variant: Variant = "fused") -> float:
    """Return the words per node and stage, mean of the five stages (first: no register read, last: none written)."""
    return words_per_stage(of, variant) - 0.4 * of.fields


def words_of_memory_variables(of: Discretisation, mechanisms: int) -> float:
    """Return the additional words per node and stage (mean of five) for attenuation with the fused-flux variant."""
    return 3.6 * mechanisms * (of.fields - of.dim)


def words_per_leap(of: Discretisation) -> float:
    """Return the words per node that a leapfrog step moves: advanced unknowns twice, all once for the other half."""
    trace = 2 * of.dim / of.nodes * of.slot / of.face_nodes
    return 3 * of.fields + 2 * trace


def team_of(of: Discretisation) -> Team:
    """Return the fastest measured team of a stage (upwind flux, constant media, no hanging faces)."""
    measured = TEAMS[of.medium, of.real] if of.dim == 3 else {}
    return measured.get(of.nodes) or Team(max(1, 128 // of.face_nodes))


def fused_stage(of: Discretisation, position: Position, team: Team | None = None) -> KernelSpec:
    """One Runge-Kutta stage in one sweep, by `team` or the fastest measured one."""
    return _sweep(of, position, team or team_of(of))


def rates(of: Discretisation) -> KernelSpec:
    """Volume and faces in one sweep: stores L(u) in place of the register."""
    return _sweep(of, "rates", team_of(of))


def _sweep(of: Discretisation, position: str, team: Team) -> KernelSpec:
    members: Members = (("on", of.members), *pointers("u k trace next_trace"), ("reach", "int64"))
    name = f"FusedStage<{of.type},Position::{position}"
    return _by_team(of, team, name, "dg/stage.hpp", (*members, *numbers(of.real, "a b dt")))


def _by_team(of: Discretisation, team: Team, name: str, header: str, members: Members) -> KernelSpec:
    """Return a kernel of whole elements; its last template arguments describe the team."""
    spec = _element_kernel(of, f"{name},{team.elements},{team.layers},{team.tuning}>", header, members)
    return replace(spec, threads=of.face_nodes * team.elements * team.layers, blocks=team.blocks, may_spill=True)


def _element_kernel(of: Discretisation, functor: str, header: str, members: Members) -> KernelSpec:
    return KernelSpec(functor, header, members, max_registers=255, team=True, parts=of.parts)


def volume(of: Discretisation) -> KernelSpec:
    """The volume integrals as contributions, for the separate variant."""
    team = team_of(of)
    members: Members = (("on", of.members), *pointers("u contributions"), ("weights", (of.real, of.nodes)))
    spec = _element_kernel(of, f"Volume<{of.type},{team.elements},{team.layers}>", "dg/separate.hpp", members)
    return replace(spec, threads=of.face_nodes * team.elements * team.layers, may_spill=True)


def face_flux(of: Discretisation) -> KernelSpec:
    """The face integrals, added to the contributions; one item per element."""
    members: Members = (("on", of.members), *pointers("u trace contributions"), ("weights", (of.real, of.nodes)))
    return _per_element(of, f"FaceFlux<{of.type}>", "dg/separate.hpp", members)


def integrate(of: Discretisation, position: Position, weighed: bool) -> KernelSpec:
    """State, register and traces from rates, or from contributions `weighed` by the inverse mass; spills on sm_80."""
    arrays = pointers("u k next_trace rates inverse_mass")
    members: Members = (("on", of.members), *arrays, *numbers(of.real, "a b dt"))
    functor = f"Integrate<{of.type},Position::{position},{str(weighed).lower()}>"
    return replace(_element_kernel(of, functor, "dg/integrate.hpp", members), may_spill=True)


def integrate_attenuated(of: Discretisation, position: Position, mechanisms: int) -> KernelSpec:
    """State, register, traces and memory variables of attenuation, from rates."""
    arrays = pointers("u k next_trace rates memory memory_k shares")
    frequencies = ("frequencies", (of.real, mechanisms))
    members: Members = (("on", of.members), *arrays, frequencies, *numbers(of.real, "a b dt"))
    functor = f"IntegrateAttenuated<{of.type},Position::{position},{mechanisms},{str(of.nodal).lower()}>"
    return _element_kernel(of, functor, "dg/attenuate.hpp", members)


def damp_memory(of: Discretisation, mechanisms: int) -> KernelSpec:
    """The decay of memory variables in an absorbing layer; one item per element of the layer."""
    arrays = pointers("memory elements factors")
    return _per_element(of, f"DampMemory<{of.type},{mechanisms}>", "dg/attenuate.hpp", arrays)


def leap_team(of: Discretisation) -> Team:
    """Return the team of both halves of a leapfrog step."""
    if of.dim == 2 or of.nodes not in LEAPS[of.medium]:
        return Team(max(1, 128 // of.face_nodes), early=False)
    elements, layers = LEAPS[of.medium][of.nodes]
    reach = max(1, NODES_AHEAD // (elements * int(of.nodes**of.dim)))
    return Team(elements, layers, reach, LEAP_BLOCKS.get((of.medium, of.real), {}).get(of.nodes, 0), early=False)


def leap(of: Discretisation, half: Half, team: Team | None = None) -> KernelSpec:
    """One half of a leapfrog step with the central flux, by `team` or the fastest measured one."""
    members: Members = (("on", of.members), *pointers("u trace"), ("reach", "int64"), ("dt", of.real))
    return _by_team(of, team or leap_team(of), f"Leap<{of.type},Half::{half}", "dg/leap.hpp", members)


def absorbing_impedance(of: Discretisation) -> KernelSpec:
    """The impedance of absorbing sides in leapfrog; one item per adjacent element."""
    return _per_element(of, f"Resist<{of.type}>", "dg/sponge.hpp", (("on", of.members), *_DAMPING))


_DAMPING = pointers("u trace elements factors")
_MORTARS = pointers("sides small_slots large_slots faces halves projections")


def _per_element(of: Discretisation, functor: str, header: str, members: Members, *, alone: bool = False) -> KernelSpec:
    """Return a kernel with one team per point, face or element; `alone` if these are few."""
    nodes = of.face_nodes * of.nodes if alone else of.face_nodes
    return replace(_element_kernel(of, functor, header, members), threads=min(256, max(32, -(-nodes // 32) * 32)))


def _mortar_kernel(of: Discretisation, name: str, arrays: str) -> KernelSpec:
    functor = f"{name}<{of.type},{str(of.nodal).lower()}>"
    return _per_element(of, functor, "dg/mortar.hpp", (("mortars", _MORTARS), *pointers(arrays)))


def mortar_traces(of: Discretisation) -> KernelSpec:
    """Traces of the large sides of hanging faces at the nodes of their small neighbours."""
    return _mortar_kernel(of, "MortarTraces", "u trace")


def mortar_corrections(of: Discretisation) -> KernelSpec:
    """Contributions of hanging faces to their large sides."""
    return _mortar_kernel(of, "MortarCorrections", "u trace corrections")


def write_traces(of: Discretisation) -> KernelSpec:
    """The traces of a whole state."""
    return _per_element(of, f"WriteTraces<{of.type}>", "dg/points.hpp", (("on", of.members), *pointers("u trace")))


def add_sources(of: Discretisation, stages: int = 5) -> KernelSpec:
    """Point sources, one item per element with sources, in a scheme of `stages` (a scheme of two has no register)."""
    arrays = pointers("u k next_trace elements first weights strengths amplitudes clock")
    integers: Members = (("sources", "int64"), ("stage", "int32"))
    members: Members = (("on", of.members), *arrays, *integers, *numbers(of.real, "b dt"))
    return _per_element(of, f"AddSources<{of.type},{stages}>", "dg/points.hpp", members, alone=True)


_COLUMNS: Members = (
    *pointers("tables origin clock delays"),
    ("length", "int64"),
    ("spacing", "float64"),
)


def add_incident(of: Discretisation, stages: int = 5) -> KernelSpec:
    """The waves of point sources at the faces of their boxes; one item per element; spills 28 bytes on sm_80."""
    arrays = pointers("u k next_trace elements first records factors outer")
    state: Members = (("on", of.members), ("mortars", _MORTARS), ("at", _COLUMNS), *arrays)
    members: Members = (*state, ("stage", "int32"), ("offset", "float64"), *numbers(of.real, "b dt"))
    return replace(_per_element(of, f"AddIncident<{of.type},{stages}>", "dg/incident.hpp", members), may_spill=True)


def add_contrast(of: Discretisation, stages: int = 5) -> KernelSpec:
    """The same where the medium of a box differs from that of the source; one item per element."""
    arrays = pointers("u k next_trace elements first tables factors")
    state: Members = (("on", of.members), ("at", _COLUMNS), *arrays)
    members: Members = (*state, ("stage", "int32"), ("offset", "float64"), *numbers(of.real, "b dt"))
    return _per_element(of, f"AddContrast<{of.type},{stages}>", "dg/incident.hpp", members, alone=True)


def incident_motion(of: Discretisation) -> KernelSpec:
    """The incident velocities at a side of the mesh; one item per element there that is in a box."""
    members: Members = (("at", _COLUMNS), *pointers("items first tables factors motion"), ("offset", "float64"))
    return _per_element(of, f"IncidentMotion<{of.type}>", "dg/incident.hpp", members)


def record(of: Discretisation) -> KernelSpec:
    """The unknowns at receivers."""
    arrays = pointers("u elements weights clock samples")
    members: Members = (*arrays, ("receivers", "int64"), ("every", "int32"))
    return _per_element(of, f"Record<{of.type}>", "dg/points.hpp", members)


def halve_traces(of: Discretisation, back: bool = False) -> KernelSpec:
    """Slots of traces to messages of half precision, or `back`; one item per slot."""
    functor = f"{'Restore' if back else 'Halve'}Traces<{CPP_TYPE[of.real]},{of.slot}>"
    arrays = pointers("messages slots trace" if back else "trace slots messages")
    return _per_element(of, functor, "dg/ghosts.hpp", arrays)


def damp(of: Discretisation) -> KernelSpec:
    """The decay in an absorbing layer; one item per element of the layer."""
    return _per_element(of, f"Damp<{of.type}>", "dg/sponge.hpp", (("on", of.members), *_DAMPING))


def peak_motion(of: Discretisation) -> KernelSpec:
    """The largest velocities on a side of the mesh; one item per adjacent element."""
    members: Members = (*pointers("u elements peaks motion"), *numbers("int32", "axis side moves"))
    return _per_element(of, f"PeakMotion<{of.type}>", "dg/peak.hpp", members)


def advance_clock() -> KernelSpec:
    """The clock of sources and receivers."""
    return KernelSpec("AdvanceClock", "dg/points.hpp", pointers("clock"), threads=32)


def default_kernels() -> Iterator[KernelSpec]:
    """Yield the kernels of meshes with the default number of nodes, the default flux and the default scheme."""
    yield advance_clock()
    choices = product(get_args(Medium), (2, 3), get_args(Real), (False, True), (False, True))
    for medium, dim, real, nodal, hanging in choices:
        of = Discretisation(medium, dim, NODES, UPWIND, real, nodal, hanging)
        for position in get_args(Position):
            yield from (fused_stage(of, position), integrate_attenuated(of, position, MECHANISMS))
        yield from (rates(of), damp_memory(of, MECHANISMS), damp(of), peak_motion(of))
        yield from (write_traces(of), add_sources(of), record(of))
        yield from (add_incident(of), add_contrast(of), incident_motion(of))
        if hanging:
            yield from (mortar_traces(of), mortar_corrections(of))


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of kernels compiled on first use."""
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
                yield from (leap(of, "velocities"), leap(of, "stresses"), absorbing_impedance(of), add_sources(of, 2))
            yield from (mortar_traces(of), mortar_corrections(of), write_traces(of), add_sources(of), record(of))
            yield from (damp(of), peak_motion(of))
        for of in (hanging, Discretisation(medium, 3, 8, real="float32")):
            yield from (add_incident(of), add_contrast(of), incident_motion(of))
        yield from (add_incident(Discretisation(medium, 3, 5, CENTRAL), 2), add_contrast(hanging, 2))
