# SPDX-License-Identifier: BSD-3-Clause
"""The CPUs beside a GPU by NVML, the library of NVIDIA's driver, through `cuda.bindings`."""

from __future__ import annotations

import os
import sys


def nvml_cpus(address: str, cpus: int | None = None) -> frozenset[int]:
    """Return the CPUs beside the GPU with this PCI address; none without NVML or if the driver does not know them.

    Args:
        address: PCI address, such as "0000:9B:00.0".
        cpus: number of CPUs of the host.
    """
    try:
        from cuda.bindings import nvml
    except ImportError:
        return frozenset()
    bits = 8 * (8 if sys.maxsize > 2**32 else 4)  # NVML's words are unsigned longs
    words = -(-(cpus or os.cpu_count() or 1) // bits)
    # Its errors share no base class: the driver may be missing or may not support the query.
    try:
        nvml.init_v2()
        masks = nvml.device_get_cpu_affinity(nvml.device_get_handle_by_pci_bus_id_v2(address), words)
        return frozenset(cpu for cpu in range(bits * words) if int(masks[cpu // bits]) >> cpu % bits & 1)
    except Exception:
        return frozenset()
