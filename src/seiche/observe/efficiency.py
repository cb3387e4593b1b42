# SPDX-License-Identifier: BSD-3-Clause
"""Parallel efficiency as a product of factors, one for each kind of loss (POP and TALP).

Formulas: theory/movement, section 8. An element is a rank or its device. `useful` is its compute time in seconds; for
a device it is the union of its kernel intervals (a sum would count overlaps twice, with efficiencies above 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

#: Relative rounding error of a sum of measured seconds.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Efficiency:
    """Efficiencies of `elements` over `elapsed` seconds; factors without a measurement are None.

    parallel = load_balance * communication (eq. 18), communication = serialisation * transfer = device * orchestration
    (eqs. 19 and 20), global = parallel * computation_scaling (eq. 21).
    """

    elements: int
    elapsed: float
    load_balance: float
    communication: float
    serialisation: float | None = None
    transfer: float | None = None
    device: float | None = None
    orchestration: float | None = None
    computation_scaling: float = 1.0

    @property
    def parallel(self) -> float:
        """Return the useful fraction of the time of all elements."""
        return self.load_balance * self.communication

    @property
    def useful(self) -> float:
        """Return the useful seconds of all elements together."""
        return self.parallel * self.elements * self.elapsed

    @property
    def overall(self) -> float:
        """Return the global efficiency."""
        return self.parallel * self.computation_scaling

    def against(self, reference: Efficiency, *, work: float = 1.0) -> Efficiency:
        """Return these efficiencies with the computation scaling from `reference`, a run on fewer elements.

        Args:
            reference: the other run.
            work: work of this run relative to the reference: 1 for strong scaling (eqs. 21 and 29).

        Raises:
            ValueError: one of the two has no useful time.
        """
        return replace(self, computation_scaling=scaling(reference.useful * work, self.useful))

    def as_dict(self) -> dict[str, Any]:
        """Return the measured factors by the names of docs/reference/summary.md."""
        factors = ("load_balance", "communication", "serialisation", "transfer", "device", "orchestration", "parallel")
        values: dict[str, Any] = {"elements": self.elements, "elapsed_s": self.elapsed}
        values |= {name: getattr(self, name) for name in factors}
        values |= {"computation_scaling": self.computation_scaling, "global": self.overall}
        return {name: value for name, value in values.items() if value is not None}


def scaling(reference: float, seconds: float) -> float:
    """Return the scaling of total seconds of a kind of work (computing, writing files): reference over present.

    Raises:
        ValueError: one of the two is not positive and finite.
    """
    if not (0 < reference < np.inf and 0 < seconds < np.inf):
        raise ValueError(f"scaling requires positive times (s) in both runs: {reference}, {seconds}")
    return reference / seconds


def efficiency(
    useful: npt.ArrayLike, elapsed: float, *, ideal: float | None = None, active: npt.ArrayLike | None = None
) -> Efficiency:
    """Return the efficiencies of elements with `useful` seconds (n,) out of `elapsed` (eqs. 17 to 20).

    Args:
        useful: seconds of each element.
        elapsed: seconds from start to end.
        ideal: seconds of the same run with an ideal network (`replay.ideal_seconds`).
        active: seconds (n,) in which each element computed or moved data.

    Raises:
        ValueError: no element, no useful time, or useful <= ideal, active <= elapsed does not hold.
    """
    seconds = np.asarray(useful, np.float64)
    if not seconds.size or seconds.min() < 0 or not 0 < seconds.max() < np.inf or not 0 < elapsed < np.inf:
        raise ValueError(f"efficiency requires positive times (s): useful {seconds.tolist()}, elapsed {elapsed}")
    max_useful = float(seconds.max())
    busiest = max_useful if active is None else float(np.max(active))
    for name, value in (("active", busiest), ("ideal", max_useful if ideal is None else ideal)):
        if not max_useful * (1 - _ROUNDING) <= value <= elapsed * (1 + _ROUNDING):
            raise ValueError(
                f"{name} {value} s is not between the longest useful {max_useful} s and elapsed {elapsed} s"
            )
    return Efficiency(
        elements=int(seconds.size),
        elapsed=elapsed,
        load_balance=min(1.0, float(seconds.mean()) / max_useful),
        communication=min(1.0, max_useful / elapsed),
        serialisation=None if ideal is None else min(1.0, max_useful / ideal),
        transfer=None if ideal is None else min(1.0, ideal / elapsed),
        device=None if active is None else min(1.0, max_useful / busiest),
        orchestration=None if active is None else min(1.0, busiest / elapsed),
    )


@dataclass(frozen=True)
class HostEfficiency:
    """Losses of the host processes: waiting for messages (by imbalance or in total) and for devices.

    parallel = load_balance * communication * offload; load_balance = inside * between nodes (eqs. 22 and 23).
    """

    load_balance: float
    inside_nodes: float
    between_nodes: float
    communication: float
    offload: float

    @property
    def parallel(self) -> float:
        """Return the fraction of the time in which processes computed or launched work."""
        return self.load_balance * self.communication * self.offload

    def as_dict(self) -> dict[str, float]:
        """Return the factors by name."""
        names = ("load_balance", "inside_nodes", "between_nodes", "communication", "offload", "parallel")
        return {name: float(getattr(self, name)) for name in names}


def host_efficiency(
    messages: npt.ArrayLike, waited: npt.ArrayLike, elapsed: float, nodes: Sequence[object] = ()
) -> HostEfficiency:
    """Return the losses of processes with `messages` seconds (n,) in MPI and `waited` (n,) for devices.

    Args:
        messages: seconds of each process in messages.
        waited: seconds of each process in waits for its device.
        elapsed: seconds from start to end.
        nodes: node of each process (n,); a single node by default.

    Raises:
        ValueError: seconds are negative or above `elapsed`.
    """
    message_seconds, device_seconds = np.asarray(messages, np.float64), np.asarray(waited, np.float64)
    losses = message_seconds + device_seconds
    if (
        not message_seconds.size
        or min(message_seconds.min(), device_seconds.min()) < 0
        or not losses.max() <= elapsed * (1 + _ROUNDING)
    ):
        raise ValueError(f"messages and waiting, {losses.tolist()} s, exceed the elapsed {elapsed} s")
    outside_messages = elapsed - message_seconds
    groups = list(nodes) or [0] * message_seconds.size
    means = [outside_messages[[group == node for group in groups]].mean() for node in dict.fromkeys(groups)]
    max_useful, best_node, mean = float(outside_messages.max()), float(max(means)), float(outside_messages.mean())
    working = float((outside_messages - device_seconds).clip(min=0.0).sum())
    return HostEfficiency(
        load_balance=mean / max_useful if max_useful > 0 else 1.0,
        inside_nodes=best_node / max_useful if max_useful > 0 else 1.0,
        between_nodes=mean / best_node if best_node > 0 else 1.0,
        communication=max_useful / elapsed,
        offload=working / float(outside_messages.sum()) if outside_messages.sum() > 0 else 1.0,
    )


@dataclass(frozen=True)
class HybridEfficiency:
    """Efficiencies of processes whose useful time is the mean of that of the process and that of its device (eq. 30).

    `cpu` and `gpu` are the parallel efficiencies of the processes and of the devices alone.
    """

    load_balance: float
    communication: float
    cpu: float
    gpu: float

    @property
    def parallel(self) -> float:
        """Return the useful fraction of the time of all processes and devices."""
        return self.load_balance * self.communication

    def as_dict(self) -> dict[str, float]:
        """Return the factors by name."""
        return {
            name: float(getattr(self, name)) for name in ("load_balance", "communication", "parallel", "cpu", "gpu")
        }


def hybrid_efficiency(cpu: npt.ArrayLike, gpu: npt.ArrayLike, elapsed: float) -> HybridEfficiency:
    """Return the efficiencies of n processes with `cpu` useful seconds (n,), the first m of which have a device.

    Args:
        cpu: seconds in which each process computed or launched work.
        gpu: useful seconds (m,) of the device of each of the first m <= n processes; another process has none.
        elapsed: seconds from start to end.

    Raises:
        ValueError: no process, more devices than processes, no useful time, or more useful than elapsed time.
    """
    processes, devices = np.asarray(cpu, np.float64), np.asarray(gpu, np.float64)
    if devices.size > processes.size:
        raise ValueError(f"expected at most one device per process: {devices.size} devices, {processes.size} processes")
    padded = np.zeros(processes.size)
    padded[: devices.size] = devices
    tree = efficiency((processes + padded) / 2, elapsed)
    return HybridEfficiency(
        tree.load_balance,
        tree.communication,
        cpu=float(processes.mean()) / elapsed,
        gpu=float(devices.mean()) / elapsed if devices.size else 0.0,
    )
