# SPDX-License-Identifier: BSD-3-Clause
"""Several nodes on one host: their ranks share neither host name, process IDs, shared memory nor boot ID.

mpiexec starts its proxies through `node_agent.sh` in place of ssh, so messages between nodes use the network, as on a
cluster. A layout such as "2+1" has two ranks on the first node and one on the second.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

#: Environment variable: number of nodes on which all jobs of ranks are started.
NODES = "SEICHE_TEST_NODES"
AGENT = Path(__file__).with_name("node_agent.sh")


@cache
def missing() -> str | None:
    """Return why nodes cannot be imitated here, None if they can."""
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    # Hydra passes its own commands as words that a shell evaluates.
    script = "'hostname; cat /proc/sys/kernel/random/boot_id'"
    done = subprocess.run([AGENT, "-x", "node1", "bash", "-c", script], capture_output=True, text=True, check=False)
    if done.returncode == 0 and done.stdout.startswith("node1\n"):
        return None
    reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return f"the kernel does not allow imitated nodes: {reason}"


def layout_of(ranks: int) -> str:
    """Return the layout that the environment asks for: blocks of ranks on its nodes, "" on this host itself."""
    count = min(ranks, int(os.environ.get("SEICHE_TEST_NODES") or 0))
    sizes = [(ranks + node) // count for node in reversed(range(count))]
    return "+".join(map(str, sizes))


def sizes_of(layout: str) -> list[int]:
    """Return the number of ranks of each node."""
    return [int(size) for size in layout.split("+")]


def options(layout: str) -> list[str]:
    """Return the options of mpiexec for a layout; skip the test if nodes cannot be imitated."""
    if not layout:
        return []
    if (reason := missing()) is not None:
        pytest.skip(reason)
    hosts = ",".join(f"node{number}:{size}" for number, size in enumerate(sizes_of(layout), 1))
    return ["-launcher", "ssh", "-launcher-exec", str(AGENT), "-hosts", hosts]
