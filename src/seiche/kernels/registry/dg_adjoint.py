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


def gradient_term_count(scheme: Discretisation) -> int:
    """Return the number of sums over time per element or node for the derivatives with respect to the material."""
    return 3 if scheme.medium == "acoustic" else 5


def words_per_adjoint_stage(scheme: Discretisation) -> float:
    """Return the words per node that the adjoint of a Runge-Kutta stage moves (theory/waves, section 10).

    To the words of an inner stage it adds the forward register, and the forward state and traces at the faces; nodal
    sums are in double precision.
    """
    faces_per_node = 2 * scheme.dim / scheme.nodes
    sum_words = 2 * gradient_term_count(scheme) * (1 if scheme.real == "float64" else 2) if scheme.nodal else 0
    face_words = faces_per_node * (scheme.slot / scheme.face_nodes + 2 * scheme.waves)
    return words_per_stage(scheme) + scheme.fields + face_words + sum_words


def words_per_adjoint_step(scheme: Discretisation) -> float:
    """Return the words moved per node to restore a state with its traces, repeat the step and apply its adjoint."""
    trace_words = 2 * scheme.dim / scheme.nodes * scheme.slot / scheme.face_nodes
    restore_words = 3 * scheme.fields + trace_words
    forward_words = 5 * words_per_node(scheme) - trace_words  # the last stage writes no traces
    return restore_words + forward_words + 5 * words_per_adjoint_stage(scheme)


def taped_stage(scheme: Discretisation, position: Tape) -> KernelSpec:
    """A stage that keeps the state before it."""
    return fused_stage(scheme, position)


def adjoint_team(scheme: Discretisation) -> Team:
    """Return the team shape measured to be fastest for the adjoint of a stage."""
    measured_teams = ADJOINT_TEAMS.get((scheme.medium, scheme.real), {}) if scheme.dim == 3 else {}
    return measured_teams.get(scheme.nodes) or team_of(scheme)


def adjoint_stage(scheme: Discretisation, team: Team | None = None) -> KernelSpec:
    """The adjoint of a stage and its derivatives with respect to the material parameters."""
    arrays = pointers("tape_u tape_k tape_trace gradient_terms")
    scalars: Members = (("weights", (scheme.real, scheme.nodes)), ("stage_b", scheme.real))
    members: Members = (
        ("step", stage_members(scheme)),
        *arrays,
        *scalars,
        ("boundary_slot", "int32"),
        ("absorbing", "int32"),
    )
    return by_team(scheme, team or adjoint_team(scheme), f"AdjointStage<{scheme.type}", "dg/adjoint.hpp", members)


def mortar_gradients(scheme: Discretisation) -> KernelSpec:
    """Derivatives with respect to the impedances of the coarse sides of nonconforming faces; one item per side."""
    members: Members = (
        ("mortars", MORTARS),
        *pointers("u trace tape_u tape_trace gradient_terms"),
        ("dt", scheme.real),
    )
    functor = f"MortarGradients<{scheme.type},{str(scheme.nodal).lower()}>"
    return per_element(scheme, functor, "dg/adjoint.hpp", members)


def layer_gradients(scheme: Discretisation) -> KernelSpec:
    """Terms of the derivatives with respect to the damping rates of an absorbing layer; one item per element of it."""
    members = pointers("k state elements gradient_terms")
    return per_element(scheme, f"LayerGradients<{scheme.type}>", "dg/adjoint_sums.hpp", members, thread_per_node=True)


def leapfrog_gradients(scheme: Discretisation) -> KernelSpec:
    """Terms of the derivatives with respect to the material parameters in a leapfrog step."""
    members: Members = (*pointers("a before middle after gradient_terms"), ("weights", (scheme.real, scheme.nodes)))
    threads = per_element(scheme, "", "", members, thread_per_node=True).threads
    return per_element(
        scheme, f"LeapfrogGradients<{scheme.type},{threads}>", "dg/adjoint_sums.hpp", members, thread_per_node=True
    )


def absorbing_boundary_gradients(scheme: Discretisation) -> KernelSpec:
    """Terms of the derivatives at absorbing boundaries in the leapfrog scheme; one item per adjacent element."""
    members = pointers("a state elements gradient_terms")
    return per_element(scheme, f"ResistanceGradients<{scheme.type}>", "dg/adjoint_sums.hpp", members)


def source_gradients(scheme: Discretisation, stages: int = 5) -> KernelSpec:
    """Derivatives with respect to source strengths, for `stages` stages per step; one item per element with sources."""
    members: Members = (
        *pointers("u elements first amplitudes clock gradient_terms"),
        ("sources", "int64"),
        ("stage", "int32"),
        ("dt", scheme.real),
    )
    return per_element(
        scheme, f"SourceGradients<{scheme.type},{stages}>", "dg/adjoint_sums.hpp", members, thread_per_node=True
    )


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
            yield from (
                adjoint_stage(scheme),
                mortar_gradients(scheme),
                source_gradients(scheme),
                layer_gradients(scheme),
            )
            yield from (taped_stage(scheme, "tape"), leapfrog_gradients(scheme), absorbing_boundary_gradients(scheme))
