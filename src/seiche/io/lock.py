# SPDX-License-Identifier: BSD-3-Clause
"""A folder lock without flock: a file created atomically, with a heartbeat.

On the host of its owner a lock is stale once the process has ended. On other hosts it is stale once its time stamp is
older than `STALE` by the clock of the file server. A stale lock is removed by a rename, which only one process can do.
A lock is a regular file; anything else at its name, such as a symbolic link, is rejected and never followed.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import secrets
import stat
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from seiche.io.files import part_path

#: Seconds between two time stamps of a lock, and the age at which it is stale.
HEARTBEAT, STALE = 20.0, 180.0
_PROC = Path("/proc")


class LockFileError(OSError):
    """A lock that is not a regular file."""


@dataclass(frozen=True)
class Owner:
    """A process: name and boot of its host, namespace, number, start time, and the command it runs."""

    host: str
    boot: str
    namespace: str
    pid: int
    began: str
    what: str
    nonce: str

    @staticmethod
    def current(description: str) -> Owner:
        """Return this process."""
        pid = os.getpid()
        return Owner(platform.node(), _boot(), _namespace(), pid, _start_time(pid), description, secrets.token_hex(8))

    @property
    def is_this_process(self) -> bool:
        """Return whether it is the calling process."""
        return self.on_this_host and self.pid == os.getpid() and self.began == _start_time(self.pid)

    @property
    def on_this_host(self) -> bool:
        """Return whether it runs on this host, in the same process namespace."""
        return (self.boot, self.namespace) == (_boot(), _namespace())

    @property
    def alive(self) -> bool:
        """Return whether the process exists; valid only for one on this host."""
        return bool(self.began) and self.began == _start_time(self.pid)

    def describe(self) -> str:
        """Return a description for messages."""
        return f"{self.what}, process {self.pid} on {self.host}"


class FolderLock:
    """The lock `path`, owned between `acquire` and `release`."""

    def __init__(self, path: Path, description: str) -> None:
        """Prepare a lock held by a run with this description."""
        self.path, self._owner = path, Owner.current(description)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(self, *, from_this_process: bool = False) -> Owner | None:
        """Acquire the lock; return None, or the owner if another process has it.

        With `from_this_process` the lock may be taken from another lock object of this process. Files that killed
        processes left while they took this lock are removed.

        Raises:
            OSError: the folder cannot be written to, or the lock is not a regular file (LockFileError).
        """
        while True:
            candidate = self.path.with_name(f"{self.path.name}.{self._owner.nonce}")
            candidate.write_text(json.dumps(asdict(self._owner)))
            try:
                self._create(candidate)
                self._remove_abandoned(candidate)
                self._start_heartbeat()
                return None
            except FileExistsError:
                owner = self._read_owner()
                if owner is None:  # released in the meantime
                    continue
                if not (owner.is_this_process and from_this_process) and not self._stale(owner, self.path, candidate):
                    return owner
                self._remove_stale(owner, part_path(candidate))
            finally:
                candidate.unlink(missing_ok=True)

    def owner(self, *, from_this_process: bool = False) -> Owner | None:
        """Return the owner of the lock if it is a live process of this host; nothing is written.

        Raises:
            OSError: the lock is not a regular file (LockFileError), or cannot be read.
        """
        owner = self._read_owner()
        if owner is None or not (owner.on_this_host and owner.alive) or (owner.is_this_process and from_this_process):
            return None
        return owner

    def _remove_stale(self, owner: Owner, removed_path: Path) -> None:
        """Remove the lock of `owner`, unless another process has acquired it in the meantime."""
        with suppress(FileNotFoundError):  # another process removed it first
            os.rename(self.path, removed_path)  # atomic: only one process succeeds
            current = _owner_at(removed_path)
            if current is not None and current.nonce != owner.nonce and not self.path.exists():
                os.rename(removed_path, self.path)
            removed_path.unlink(missing_ok=True)

    def _remove_abandoned(self, candidate: Path) -> None:
        """Remove the files of `acquire` of processes that have ended; `candidate` is a file of the present time."""
        pattern = re.compile(re.escape(self.path.name) + r"\.[0-9a-f]{16}(\.part)?")
        for path in self.path.parent.iterdir():
            if pattern.fullmatch(path.name) and path != candidate:
                with suppress(OSError):
                    owner = _owner_at(path)
                    if owner is not None and self._stale(owner, path, candidate):
                        path.unlink()

    def _create(self, candidate: Path) -> None:
        """Create the lock, or raise FileExistsError."""
        try:
            os.link(candidate, self.path)  # atomic, also on NFS
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            os.write(descriptor, candidate.read_bytes())
            os.close(descriptor)

    def _read_owner(self) -> Owner | None:
        return _owner_at(self.path)

    def _stale(self, owner: Owner, path: Path, candidate: Path) -> bool:
        """Return whether the lock `path` of `owner` is stale; `candidate` is a file with the present time stamp."""
        if owner.on_this_host:
            return not owner.alive
        try:
            return candidate.stat().st_mtime - path.stat().st_mtime > STALE
        except FileNotFoundError:
            return True

    @property
    def nonce(self) -> str:
        """Return the random number of this lock object."""
        return self._owner.nonce

    @property
    def is_owned(self) -> bool:
        """Return whether this object still has the lock."""
        try:
            owner = self._read_owner()
        except LockFileError:
            return False
        return owner is not None and owner.nonce == self._owner.nonce

    def _start_heartbeat(self) -> None:
        self._ended = ended = threading.Event()

        def refresh() -> None:
            while not ended.wait(HEARTBEAT):
                with suppress(OSError):
                    if not self.is_owned:  # another object of this process has it
                        return
                    os.utime(self.path)

        self._thread = threading.Thread(target=refresh, name="seiche lock", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        self._ended.set()
        if self._thread is not None and self.is_owned:
            self.path.unlink(missing_ok=True)
        self._thread = None


def _owner_at(path: Path) -> Owner | None:
    """Return the owner that a lock names, None without a lock; LockFileError if it is not a regular file."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            kind = "a symbolic link" if path.is_symlink() else "not a regular file"
            raise LockFileError(errno.EINVAL, f"{path.name} is {kind}; remove it", str(path))
        return Owner(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        return Owner("an unknown host", "", "", 0, "", "an unknown run", "")


def _boot() -> str:
    return _text(_PROC / "sys/kernel/random/boot_id")


def _namespace() -> str:
    with suppress(OSError):
        return os.readlink(_PROC / "self/ns/pid")
    return ""


def _start_time(pid: int) -> str:
    """Return the start time of a process in ticks since the boot, "" if it does not exist."""
    fields = _text(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
