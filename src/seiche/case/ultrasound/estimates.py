# SPDX-License-Identifier: BSD-3-Clause
"""Estimates of an ultrasound case, at each frequency of its sources."""

from __future__ import annotations

from seiche.case.ultrasound.setup import UltrasoundSetup
from seiche.case.ultrasound.sources import Signal
from seiche.solver import Estimate
from seiche.ultrasound.advice import estimates


def ultrasound_estimates(setup: UltrasoundSetup) -> list[Estimate]:
    """Return the estimates of a case before a run; without a source of known frequency, by the spectra."""
    problem, scheme = setup.problem, setup.case.run.scheme
    frequencies = sorted({source.frequency for source in setup.case.source if isinstance(source, Signal)})
    if not frequencies:
        return estimates(problem, scheme)
    return [estimate for frequency in frequencies for estimate in estimates(problem, scheme, frequency)]
