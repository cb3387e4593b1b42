# SPDX-License-Identifier: BSD-3-Clause
"""Checks of the data-movement models: recovery of known parameters, published tables, corrected laws."""

from __future__ import annotations

from typing import Literal

import numpy as np

from seiche.backend import open_backend
from seiche.domain.world import World
from seiche.machine.laws import terms
from seiche.machine.laws.curve import Curve, Piece, postal
from seiche.machine.laws.file import read_machine
from seiche.machine.laws.fit import errors, fit, segment
from seiche.machine.laws.models import crossover, max_rate
from seiche.machine.measure.copies import launches, staged_copies
from seiche.observe.bandwidth import copy_bandwidth
from seiche.validate.check import Check, Setting

_PAPER = "Bienz, Olson, Gropp, Lockhart, arXiv:2010.10378"
_TWO = Curve((Piece(4, 8192, 1e-6, 4e-10), Piece(16384, 1 << 21, 6e-6, 5e-11)))
#: Number of inter-node messages of s bytes above which staging is faster, from the published tables I and II; 0: never.
_SIZES = (128, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 524288)
_CROSSOVERS = {
    "summit": (6.1, 7.7, 10.9, 24.6, 0.0, 0.0, 27.5, 6.8, 1.2),
    "lassen": (46.0, 44.8, 7.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
}


def protocols(setting: Setting) -> list[Check]:
    """Return how often two protocols are identified from noisy times, and how often intervals contain the truth."""
    random = np.random.default_rng(1)
    sizes = 2.0 ** np.arange(2, 22)
    trials = 50 if setting.quick else 400
    identified = contained = 0
    for seed in range(trials):
        noisy = _TWO.seconds(sizes) * (1 + 0.005 * random.standard_normal(len(sizes)))
        identified += [sizes[k] for k in segment(sizes, noisy)] == [4, 16384]
        line = (2e-6 + 1e-10 * sizes[4:]) * (1 + 0.01 * random.standard_normal(len(sizes) - 4))
        interval = fit(sizes[4:], line, cuts=[], seed=seed).pieces[0].beta_interval
        contained += interval is not None and interval[0] <= 1e-10 <= interval[1]
    return [
        Check(
            "protocols found in times with 0.5 % noise", identified / trials, 0.95, "above", reference="synthetic times"
        ),
        Check("true beta inside its 95 % interval", contained / trials, 0.85, "above", reference="synthetic times"),
    ]


def recovered_terms(setting: Setting) -> list[Check]:
    """Return the errors of injection rate, gap and copy-engine sharing fitted to times with one per cent noise."""
    del setting
    random = np.random.default_rng(2)

    def noisy(values: object) -> np.ndarray:
        exact = np.asarray(values, np.float64)
        return exact * (1 + 0.01 * random.standard_normal(exact.shape))

    p, s = (grid.ravel() for grid in np.meshgrid(np.arange(1, 33), 2.0 ** np.arange(14, 21)))
    times = noisy([max_rate(_TWO, size, int(count), 30e9) for count, size in zip(p, s, strict=True)])
    rate, _ = terms.injection_rate(p, s, times, _TWO)
    n, s = (grid.ravel() for grid in np.meshgrid([2, 4, 8, 16, 32], 2.0 ** np.arange(3, 12)))
    gap = terms.gap(n, s, noisy(1e-6 + (n - 1) * 4e-7 + n * 4e-10 * s), _TWO)
    k, s = (grid.ravel() for grid in np.meshgrid([2, 3, 4, 6], 2.0 ** np.arange(10, 20)))
    sigma = terms.engine_sharing(k, s, noisy(1e-5 * (1 + 0.3 * (k - 1)) + 2e-11 * s), postal(1e-5, 2e-11))
    results = {"injection rate": rate / 30e9, "gap": gap / 4e-7, "sharing of a copy engine": sigma / 0.3}
    return [
        Check(f"{name} from synthetic times", abs(ratio - 1), 0.03, reference="synthetic times")
        for name, ratio in results.items()
    ]


def printed_tables(setting: Setting) -> list[Check]:
    """Return the largest differences between staging crossovers and those of the published tables."""
    del setting
    checks = []
    for name, expected in _CROSSOVERS.items():
        machine = read_machine(name)
        device, host = machine.curve("device_mpi", "off-node"), machine.curve("host", "off-node")
        to_host, to_device = machine.curve("d2h", "on-socket"), machine.curve("h2d", "on-socket")
        results = [crossover(device, to_host, to_device, host, size) or 0.0 for size in _SIZES]
        max_error = max(abs(a - b) for a, b in zip(results, expected, strict=True))
        checks.append(
            Check(
                f"number of messages above which staging is faster, {name}",
                max_error,
                0.051,
                unit="messages",
                reference=_PAPER,
            )
        )
    curve = read_machine("summit").curve("host", "off-node")
    difference = abs(max_rate(curve, 65536, 2, 33.4e9) / float(curve.seconds(65536)) - 1)
    checks.append(Check("postal law below the injection limit", difference, 1e-12, reference=_PAPER))
    return checks


def this_machine(setting: Setting) -> list[Check]:
    """Return measurements of this device: launch times, bandwidth, and the error of the copy-time fit."""
    backend = open_backend(setting.device, setting.threads)
    rate = copy_bandwidth(backend, World.serial())
    launch = launches(backend)
    checks = [
        Check("copy bandwidth", rate * 1e-9, sense="recorded", unit="GB/s"),
        Check("kernel launch", launch.kernel * 1e6, sense="recorded", unit="us"),
        Check("additional kernel in a graph", (launch.graph_kernel or 0.0) * 1e6, sense="recorded", unit="us"),
    ]
    directions: tuple[Literal["h2d", "d2h"], ...] = ("h2d", "d2h")
    for direction in directions if not backend.host_memory else ():
        curve = staged_copies(backend, direction, 2.0 if setting.quick else 10.0)
        results = errors(fit(curve.sizes, curve.seconds), curve.sizes, curve.seconds)
        checks.append(Check(f"{direction} copies, median error of the fit", float(np.median(results)), 0.05))
    return checks
