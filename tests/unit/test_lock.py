# SPDX-License-Identifier: BSD-3-Clause
"""The lock of a folder: processes that end at any moment, and files at its name that are no locks."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import seiche
from prediction_cases import case_file
from seiche.case.folder import LOCK
from seiche.errors import CaseError
from seiche.io.lock import FolderLock, Owner


def test_a_process_that_replaces_late_leaves_the_lock_to_who_was_faster(tmp_path: Path) -> None:
    """Both saw the same dead owner; the second must not remove the lock of the first."""
    path = tmp_path / LOCK
    dead = replace(Owner.current("dead"), pid=2**22 + 1, began="1", nonce="0")
    path.write_text(json.dumps(asdict(dead)))
    first, second = FolderLock(path, "first"), FolderLock(path, "second")
    seen = Owner(**json.loads(path.read_text()))
    assert first.acquire() is None
    second._remove_stale(seen, tmp_path / "aside")
    assert first.is_owned and not (tmp_path / "aside").exists()
    assert second.acquire() == first._owner
    first.release()
    assert not path.exists()


def test_a_damaged_lock_counts_by_its_age(tmp_path: Path) -> None:
    path = tmp_path / LOCK
    path.write_text("{")
    lock = FolderLock(path, "x")
    owner = lock.acquire()
    assert owner is not None and owner.host == "an unknown host"
    os.utime(path, (1, 1))
    assert lock.acquire() is None and lock.is_owned
    lock.release()


@pytest.mark.parametrize("what", ["dangling link", "link", "pipe", "folder"])
def test_a_lock_that_is_not_a_regular_file_is_rejected_and_remains(what: str, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    out.mkdir()
    if what == "pipe":
        os.mkfifo(out / LOCK)
    elif what == "folder":
        (out / LOCK).mkdir()
    else:
        (out / LOCK).symlink_to(other)
        if what == "link":
            other.write_text(json.dumps(asdict(Owner.current("x"))))
    kind = "a symbolic link" if "link" in what else "not a regular file"
    for options in ({}, {"replace": True}):
        with pytest.raises(CaseError, match=rf"^{out}: cannot lock the folder: {LOCK} is {kind}; remove it$"):
            seiche.load(case_file(tmp_path, "flow"), output=out, **options)
    with pytest.raises(OSError, match=f"is {kind}"):
        FolderLock(out / LOCK, "x").acquire()
    assert [path.name for path in out.iterdir()] == [LOCK]


def test_taking_a_lock_removes_what_killed_processes_left_and_nothing_else(tmp_path: Path) -> None:
    path, now = tmp_path / LOCK, Owner.current("x")
    dead = replace(now, pid=2**22 + 1, began="1")
    far = replace(now, host="far", boot="another")
    owners = {"dead": dead, "living": now, "far": far, "old far": far, "damaged": None, "old damaged": None}
    files = {}
    for number, (name, owner) in enumerate(owners.items()):
        files[name] = tmp_path / f"{LOCK}.{number:016x}{'.part' if number % 2 else ''}"
        files[name].write_text(json.dumps(asdict(owner)) if owner is not None else "")
        if name.startswith("old"):
            os.utime(files[name], (1, 1))
    files["mine"] = tmp_path / f"{LOCK}.note"
    files["mine"].write_text(json.dumps(asdict(dead)))
    lock = FolderLock(path, "x")
    assert lock.acquire() is None
    lock.release()
    assert {name for name, file in files.items() if file.exists()} == {"living", "far", "damaged", "mine"}
