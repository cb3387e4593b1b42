# SPDX-License-Identifier: BSD-3-Clause
"""Output lines of `seiche check` about an ultrasound case: its parameters, accuracy and cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seiche.case.check import check_lines
from seiche.case.ultrasound.estimates import ultrasound_estimates
from seiche.case.ultrasound.setup import UltrasoundSetup, check_limits, decompose, error_of_ranks, local_parts
from seiche.errors import CaseError
from seiche.ultrasound.advice import memory, shared_fields
from seiche.ultrasound.crossing import cuts_along_diagonal
from seiche.ultrasound.local_basis import min_overlap
from seiche.ultrasound.plan import received_numbers
from seiche.ultrasound.problem import Problem
from seiche.ultrasound.slabs import slabs_of


def describe(setup: UltrasoundSetup, ranks: int = 1) -> list[str]:
    """Return the lines of `seiche check` for a number of ranks.

    Raises:
        CaseError: the grid cannot be partitioned, the case uses a feature that is limited to one rank, or an interval
            between outputs is shorter than half a step.
    """
    check_limits(setup, ranks)
    setup.check_intervals()
    problem, case = setup.problem, setup.case
    bytes_needed = memory(problem, case.run.scheme, case.run.precision, setup.request, case.run.device)
    speeds, densities = ((float(np.min(v)), float(np.max(v))) for v in (problem.sound_speed, problem.density))
    limit = "any time step is stable" if np.isinf(setup.limit) else f"stable up to {setup.limit:.4g} s"
    rows = [
        ("case", setup.source + (f": {case.title}" if case.title else "")),
        ("points", f"{' x '.join(map(str, problem.shape))} = {problem.points:,}, spacing {problem.spacing[0]:.4g} m"),
        *([("symmetry", f"about the axis x, outer end {problem.outer_end}")] if problem.outer_end is not None else []),
        ("time step", f"{problem.dt:.4g} s ({limit}), {problem.steps:,} steps"),
        ("sound speed", f"{speeds[0]:g} to {speeds[1]:g} m/s, reference {problem.reference_speed:g} m/s"),
        *_shear_rows(problem),
        ("density", f"{densities[0]:g} to {densities[1]:g} kg/m^3"),
    ]
    frequencies = sorted({source.frequency for source in case.source if hasattr(source, "frequency")})
    scheme = case.run.scheme if problem.elastic is None else "elastic"
    rows.append(("scheme", f"{scheme}, {case.run.precision}, on {case.run.device}"))
    if ranks > 1:
        try:
            lines, work = _rank_rows(setup, ranks, frequencies)
        except CaseError as error:
            raise CaseError(f"{setup.source}: {error}") from None
        rows += lines
        bytes_needed = int(bytes_needed / ranks * work)
        if decompose(setup, ranks).basis == "global":
            buffers = shared_fields(problem, case.run.scheme) * np.dtype(case.run.precision).itemsize
            bytes_needed += int(buffers * problem.points / ranks)
    share = f", on each of {ranks} ranks" if ranks > 1 else ""
    per_point = bytes_needed * ranks / problem.points
    rows.append(("memory", f"{bytes_needed / 1e6:.4g} MB, {per_point:.1f} B per point{share}"))
    return check_lines(rows, ultrasound_estimates(setup), setup.notes)


def _shear_rows(problem: Problem) -> list[tuple[str, str]]:
    """Return the line about shear speeds of an elastic problem."""
    if problem.elastic is None:
        return []
    speeds = problem.elastic.shear_speed
    return [("shear speed", f"{float(np.min(speeds)):g} to {float(np.max(speeds)):g} m/s")]


def _rank_rows(setup: UltrasoundSetup, ranks: int, frequencies: Sequence[float]) -> tuple[list[tuple[str, str]], float]:
    """Return the lines about several ranks, and the ratio of their total work to that of one rank."""
    problem, decomposition = setup.problem, decompose(setup, ranks)
    basis, overlap = decomposition.basis, decomposition.overlap
    if basis == "auto":  # the choice of a run without a machine file
        try:
            local_parts(setup, ranks, decomposition.split, overlap)
        except CaseError:
            basis = "global"
    if basis == "global":
        shape = max(slabs_of(problem.shape, ranks), key=lambda part: part.shape).shape
        work = ranks * int(np.prod(shape)) / problem.points
        return [(f"{ranks} ranks", f"{' x '.join(map(str, shape))} points, transforms of the whole grid, exact")], work
    parts = local_parts(setup, ranks, decomposition.split, overlap)
    shape = max(parts, key=lambda part: int(np.prod(part.shape))).shape
    work = ranks * int(np.prod(shape)) / problem.points
    extents, width = " x ".join(map(str, shape)), min_overlap(parts)
    wider = f" ({overlap} requested; widened for the transforms)" if width > overlap else ""
    rows = [(f"{ranks} ranks", f"{extents} points with overlaps of {width}{wider}, {work:.2f} times the work of one")]
    received = max(received_numbers(problem, part) for part in parts) * np.dtype(setup.case.run.precision).itemsize
    rows.append(("exchange", f"{received / 1e6:.4g} MB received by a rank per step, at most"))
    cuts = cuts_along_diagonal(parts)
    for frequency in frequencies:
        error = error_of_ranks(problem, parts, frequency)
        rows.append((f"error of ranks at {frequency:.4g} Hz", f"{error:.1e} of the field after {cuts} cuts"))
    return rows, work
