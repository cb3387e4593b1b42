# SPDX-License-Identifier: BSD-3-Clause
"""Windkessel outlets: the outflow drives a circuit of resistances and a compliance, which determines the pressure.

The sums over sites are integers (kernels/flow/windkessel.hpp), so they do not depend on the number of ranks. A single
rank does not wait for its device. Several ranks reduce their sums once per step, after the sweep has been launched, so
that the device does not wait either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.backend import Array, Backend
from seiche.domain.world import World
from seiche.errors import CaseError
from seiche.flow.model import WindkesselIolet
from seiche.flow.velocity_set import CS2
from seiche.kernels.registry import flow as registry

#: Partial sums of each outlet in the kernels (`kernels/flow/windkessel.hpp`).
SLOTS = 64
#: Limits of the assumed immediate decrease of the outflow for a higher pressure, divided by that of anti-bounce-back.
#: The lower one is also the ratio per acoustic impedance of the circuit. A larger factor is a compliance at the
#: outlet, that of a third of a spacing of fluid per unit, which filters the feedback of the circuit. Without it (1),
#: outlets with a resistance of one acoustic impedance are unstable at tau 0.51 (theory/flow, eq. 20).
MIN_RESPONSE_FACTOR, MAX_RESPONSE_FACTOR = 16.0, 32.0

Floats = npt.NDArray[np.float64]


def circuit_coefficients(outlet: WindkesselIolet, response: float) -> list[float]:
    """Return the coefficients decay, gain, distal, proximal, assumed response and start of theory/flow, eqs. 19 and 20.

    `response` is the immediate decrease of the outflow for a unit increase of the outlet density.
    """
    compliance = outlet.resistance * outlet.compliance
    decay = math.exp(-1.0 / compliance) if compliance > 0 else 0.0
    gain, proximal = (1.0 - decay) * outlet.resistance / CS2, outlet.proximal_resistance / CS2
    distal = (1.0 - decay) * (outlet.distal_density - 1.0)
    impedances = math.sqrt(3.0) * response * (gain + proximal)
    factor = min(MAX_RESPONSE_FACTOR, MIN_RESPONSE_FACTOR * max(1.0, impedances))
    return [decay, gain, distal, proximal, factor * response, outlet.initial_density - 1.0]


class Windkessels:
    """All Windkessel outlets of a model, computed identically on every rank.

    `values` (outlets,) are the density excesses read by the pressure kernels.
    """

    def __init__(
        self,
        backend: Backend,
        world: World,
        clock: Array,
        outlets: dict[str, WindkesselIolet],
        responses: Sequence[float],
        *,
        real: Any,
        block: int,
    ) -> None:
        """Create the circuits of the `outlets` by name; ramps are uploaded for `block` steps at a time.

        Raises CaseError for an element that is negative or not finite, or a resistance of zero.
        """
        for name, outlet in outlets.items():
            _check_elements(name, outlet)
        self.outlets, self._backend, self._world, self._real = outlets, backend, world, real
        self._responses = responses
        self._coefficients = backend.upload(self._host_coefficients())
        start = np.array([outlet.initial_density - 1.0 for outlet in outlets.values()])
        count = len(outlets)
        self._sums = backend.zeros(SLOTS * count, np.int64)
        self._capacitor, self._imposed = backend.upload(start), backend.upload(start)
        self.values = backend.upload(start.astype(real))
        self._ramp = backend.zeros((block, count), real)
        kernel = backend.load(registry.windkessel(real))
        members = {
            "sums": self._sums,
            "capacitor": self._capacitor,
            "imposed": self._imposed,
            "values": self.values,
            "coefficients": self._coefficients,
            "ramp": self._ramp,
            "clock": clock,
            "count": count,
        }
        self._arguments = members  # referenced by the bound kernel
        self._advance = kernel.bind(backend.pack(kernel, **members), 0, count)
        self._host = backend.pinned(SLOTS * count, np.int64) if world.size > 1 else None
        self._stream = backend.stream() if world.size > 1 else None
        if self._host is not None:
            self._host[:] = 0

    def _host_coefficients(self) -> Floats:
        return np.array(
            [circuit_coefficients(o, r) for o, r in zip(self.outlets.values(), self._responses, strict=True)]
        )

    def set_outlet(self, number: int, outlet: WindkesselIolet) -> None:
        """Use the elements of `outlet` from the next step on, with the current pressures and flow.

        May raise CaseError.
        """
        name = list(self.outlets)[number]
        _check_elements(name, outlet)
        self.outlets[name] = outlet
        self._backend.assign(self._coefficients, self._host_coefficients())

    @property
    def needs_host(self) -> bool:
        """Return whether a step needs work on the host, which excludes the replay of graphs."""
        return self._host is not None

    def prepare(self, time: Floats) -> None:
        """Upload the ramps at `time` (block,)."""
        columns = [ramp_factor(outlet.ramp, time) for outlet in self.outlets.values()]
        self._backend.assign(self._ramp, np.stack(columns, axis=1).astype(self._real))

    def advance(self) -> None:
        """Advance the circuits with the flow of the last step and set the densities of this step."""
        if self._host is not None and self._stream is not None:
            self._stream.synchronize()
            self._host[:] = self._world.allreduce_sum(self._host)
            with self._backend.use(self._stream):
                self._backend.copy_to_device(self._host, self._sums)
            self._backend.current().wait(self._stream.record())
        self._advance()

    def summation(self, inflow: Array, outlet: Array, sites: int) -> Callable[[], None]:
        """Return a call that adds the `inflow` (sites,) of a step to the sums of outlets.

        `outlet` (sites,) are their numbers.
        """
        kernel = self._backend.load(registry.sum_inflow(self._real))
        return kernel.bind(self._backend.pack(kernel, inflow=inflow, outlet=outlet, sums=self._sums), 0, sites)

    def collect(self) -> None:
        """With several ranks, start copying the sums of this step to the host."""
        if self._host is not None and self._stream is not None:
            self._stream.wait(self._backend.current().record())
            with self._backend.use(self._stream):
                self._backend.copy_to_host(self._sums, self._host)

    def state(self) -> dict[str, float | int]:
        """Return the restart data, which are the pressures and the last inflow of each outlet (collective)."""
        sums = self._backend.download(self._sums).reshape(-1, SLOTS).sum(axis=1)
        total = self._world.allreduce_sum(np.asarray(sums, np.int64))
        capacitor, imposed = self._backend.download(self._capacitor), self._backend.download(self._imposed)
        state: dict[str, float | int] = {}
        for k, name in enumerate(self.outlets):
            state[f"{name}.capacitor"], state[f"{name}.imposed"] = float(capacitor[k]), float(imposed[k])
            state[f"{name}.inflow"] = int(total[k])
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore the result of `state()`; an outlet missing from it starts from its initial density."""
        start = np.array([outlet.initial_density - 1.0 for outlet in self.outlets.values()])
        capacitor, imposed, sums = start.copy(), start.copy(), np.zeros((len(start), SLOTS), np.int64)
        for k, name in enumerate(self.outlets):
            capacitor[k] = float(state.get(f"{name}.capacitor", start[k]))
            imposed[k] = float(state.get(f"{name}.imposed", start[k]))
            if self._world.rank == 0:
                sums[k, 0] = int(state.get(f"{name}.inflow", 0))
        self._backend.assign(self._capacitor, capacitor)
        self._backend.assign(self._imposed, imposed)
        self._backend.assign(self._sums, sums.reshape(-1))
        self.collect()


def ramp_factor(ramp: float, time: Floats) -> Floats:
    """Return the linear ramp from 0 at time 0 to 1 after `ramp` steps."""
    return np.clip(time / ramp, 0.0, 1.0) if ramp > 0 else np.ones(len(time))


def _check_elements(name: str, outlet: WindkesselIolet) -> None:
    for element in ("resistance", "compliance", "proximal_resistance"):
        value = getattr(outlet, element)
        if not (math.isfinite(value) and value >= 0) or (element == "resistance" and value == 0):
            bound = "positive" if element == "resistance" else "zero or more"
            raise CaseError(f"iolet {name!r}: Windkessel {element} {value} (lattice units): expected a number, {bound}")
