# SPDX-License-Identifier: BSD-3-Clause
"""Hosts are identified by more than their names, and processes by a value in their memory."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from seiche.domain import rank_locations
from seiche.domain.world import World
from seiche.halo.transports import single_copy
from seiche.halo.transports.memory import HostMemory
from seiche.machine.laws.locality import RankPlacement, hardware, locality


def host(monkeypatch: pytest.MonkeyPatch, boot: str, space: str, name: str = "node") -> str:
    monkeypatch.setattr(rank_locations, "boot_id", lambda: boot)
    monkeypatch.setattr(rank_locations, "pid_namespace", lambda: space)
    return rank_locations.host_identity(name)


def test_hosts_of_one_name_differ_by_boot_and_by_process_space(monkeypatch: pytest.MonkeyPatch) -> None:
    first = host(monkeypatch, "b1", "7")
    assert first == host(monkeypatch, "b1", "7") == "node@b1/7"
    others = [host(monkeypatch, *inputs) for inputs in (("b2", "7"), ("b1", "8"), ("b1", "7", "edge"))]
    assert len({first, *others}) == 4
    assert [rank_locations.host_name(item) for item in (first, *others)] == ["node", "node", "node", "edge"]
    assert rank_locations.on_different_hosts(first, others[0]) == "on different hosts or containers called node"
    assert rank_locations.on_different_hosts(first, others[2]) == "on different hosts"
    assert locality(RankPlacement(first), RankPlacement(others[0])) == "off-node"
    assert hardware([RankPlacement(first), RankPlacement(others[0])], "mpi")["host"] == "node"


def test_without_a_boot_number_the_name_is_the_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rank_locations, "_BOOT_ID_FILE", tmp_path / "none")
    monkeypatch.setattr(rank_locations, "_PID_NAMESPACE_LINK", tmp_path / "none")
    assert (rank_locations.boot_id(), rank_locations.pid_namespace(), rank_locations.host_identity("node")) == (
        "",
        "",
        "node",
    )


def test_boot_and_process_space_are_read_as_the_system_gives_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "boot").write_text("5802202d-7ae9\n")
    (tmp_path / "pid").symlink_to("pid:[4026531836]")
    monkeypatch.setattr(rank_locations, "_BOOT_ID_FILE", tmp_path / "boot")
    monkeypatch.setattr(rank_locations, "_PID_NAMESPACE_LINK", tmp_path / "pid")
    assert rank_locations.host_identity("node") == "node@5802202d-7ae9/4026531836"
    assert [rank_locations.host_name(item) for item in rank_locations.hosts_of(World.serial())] == [os.uname().nodename]


def test_memory_of_a_process_is_opened_only_if_its_nonce_is_there() -> None:
    own = np.arange(64, dtype=np.uint8)
    process, address = HostMemory().share(int(own.ctypes.data))
    try:
        single_copy.verify_process(process)
    except OSError:
        pytest.skip("process_vm_readv is blocked here")
    into = np.zeros(64, np.uint8)
    HostMemory().open((process, address)).read(0, into)
    assert (into == own).all()
    assert len(process.nonce) == single_copy.NONCE
    stranger = process._replace(nonce=bytes(single_copy.NONCE))
    with pytest.raises(OSError, match=f"process ID {os.getpid()} belongs to another process"):
        HostMemory().open((stranger, address))
    with pytest.raises(OSError, match=f"process ID {os.getpid()} belongs to another PID namespace"):
        HostMemory().open((process._replace(namespace="1"), address))
    with pytest.raises(OSError, match="Bad address"):
        HostMemory().open((process._replace(address=8), address))
