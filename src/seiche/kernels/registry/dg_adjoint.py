# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of the adjoint of the discontinuous Galerkin method, `kernels/dg/adjoint.hpp` and `adjoint_sums.hpp`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import get_args

from .dg import (
    CENTRAL,
    MORTARS,
    Discretisation,
    Medium,
    Tape,
    Team,
    by_team,
    fused_stage,
    per_element,
    stage_members,
    team_of,
    words_per_node,
    words_per_stage,
)
from .dg_teams import ADJOINT_TEAMS
from .spec import KernelSpec, Members, Real, pointers


def sums_of(scheme: Discretisation) -> int:
    """Return the number of sums for the derivatives with respect to the media of an element or node."""
    return 3 if scheme.medium == "acoustic" else 5


def words_per_adjoint_stage(scheme: Discretisation) -> float:
    """Return the words per node that the adjoint of a stage moves (theory/waves, section 10).

    To the words of an inner stage it adds the forward register, and the forward state and traces at the faces; sums by
    node are in double precision.
    """
    faces = 2 * scheme.dim / scheme.nodes
    sums = 2 * sums_of(scheme) * (1 if scheme.real == "float64" else 2) if scheme.nodal else 0
    at_faces = faces * (scheme.slot / scheme.face_nodes + 2 * scheme.waves)
    return words_per_stage(scheme) + scheme.fields + at_faces + sums


def words_per_reversed_step(scheme: Discretisation) -> float:
    """Return the words per node to restore a state with its traces, repeat its step and reverse it."""
    trace = 2 * scheme.dim / scheme.nodes * scheme.slot / scheme.face_nodes
    restored = 3 * scheme.fields + trace
    taped = 5 * words_per_node(scheme) - trace  # the last stage writes no traces
    return restored + taped + 5 * words_per_adjoint_stage(scheme)


def taped_stage(scheme: Discretisation, position: Tape) -> KernelSpec:
    """A stage that keeps the state before it."""
    return fused_stage(scheme, position)


def adjoint_team(scheme: Discretisation) -> Team:
    """Return the fastest measured team of the adjoint of a stage."""
    measured = ADJOINT_TEAMS.get((scheme.medium, scheme.real), {}) if scheme.dim == 3 else {}
    return measured.get(scheme.nodes) or team_of(scheme)


def adjoint_stage(scheme: Discretisation, team: Team | None = None) -> KernelSpec:
    """The adjoint of a stage and its derivatives with respect to the media."""
    arrays = pointers("tape_u tape_k tape_trace totals")
    scalars: Members = (("weights", (scheme.real, scheme.nodes)), ("share", scheme.real))
    members: Members = (
        ("step", stage_members(scheme)),
        *arrays,
        *scalars,
        ("boundary_slot", "int32"),
        ("absorbing", "int32"),
    )
    return by_team(scheme, team or adjoint_team(scheme), f"AdjointStage<{scheme.type}", "dg/adjoint.hpp", members)


def mortar_slopes(scheme: Discretisation) -> KernelSpec:
    """Derivatives with respect to the impedances of the large sides of hanging faces; one item per side."""
    members: Members = (("mortars", MORTARS), *pointers("u trace tape_u tape_trace totals"), ("dt", scheme.real))
    functor = f"MortarSlopes<{scheme.type},{str(scheme.nodal).lower()}>"
    return per_element(scheme, functor, "dg/adjoint.hpp", members)


def layer_sums(scheme: Discretisation) -> KernelSpec:
    """Sums for the derivatives with respect to the rates of an absorbing layer; one item per element of the layer."""
    members = pointers("k state elements totals")
    return per_element(scheme, f"LayerSums<{scheme.type}>", "dg/adjoint_sums.hpp", members, few=True)


def leap_sums(scheme: Discretisation) -> KernelSpec:
    """Sums of a leapfrog step for the derivatives with respect to the media."""
    members: Members = (*pointers("a before middle after totals"), ("weights", (scheme.real, scheme.nodes)))
    threads = per_element(scheme, "", "", members, few=True).threads
    return per_element(scheme, f"LeapSums<{scheme.type},{threads}>", "dg/adjoint_sums.hpp", members, few=True)


def resistance_sums(scheme: Discretisation) -> KernelSpec:
    """Sums for the derivatives with respect to absorbing sides in leapfrog; one item per adjacent element."""
    members = pointers("a state elements totals")
    return per_element(scheme, f"ResistanceSums<{scheme.type}>", "dg/adjoint_sums.hpp", members)


def source_slopes(scheme: Discretisation, stages: int = 5) -> KernelSpec:
    """Derivatives with respect to sources, in a scheme of `stages`; one item per element with sources."""
    members: Members = (
        *pointers("u elements first amplitudes clock totals"),
        ("sources", "int64"),
        ("stage", "int32"),
        ("dt", scheme.real),
    )
    return per_element(scheme, f"SourceSlopes<{scheme.type},{stages}>", "dg/adjoint_sums.hpp", members, few=True)


def other_kernels() -> Iterator[KernelSpec]:
    """Yield representatives of kernels compiled on first use."""
    for medium, real, nodes in product(get_args(Medium), get_args(Real), (6, 8)):
        scheme = Discretisation(medium, 3, nodes, real=real)
        yield adjoint_stage(scheme)
        yield from (taped_stage(scheme, position) for position in get_args(Tape))
    for medium in get_args(Medium):
        for scheme in (
            Discretisation(medium, 3, 5, nodal=True, hanging=True),
            Discretisation(medium, 2, 5, flux=CENTRAL, hanging=True),
        ):
            yield from (adjoint_stage(scheme), mortar_slopes(scheme), source_slopes(scheme), layer_sums(scheme))
            yield from (taped_stage(scheme, "tape"), leap_sums(scheme), resistance_sums(scheme))
