# SPDX-License-Identifier: BSD-3-Clause
"""A lock of a folder that needs no flock: one file that only one process can make, with a heartbeat.

On the host of its owner a lock is stale once the process is gone; seen from elsewhere, once its time stamp is older
than `STALE` by the clock of the file server. A stale lock is taken over by a rename, which only one process can do.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from seiche.io.files import part_path

#: Seconds between two time stamps of a lock, and the age from which on its owner counts as gone.
HEARTBEAT, STALE = 20.0, 180.0
_PROC = Path("/proc")


@dataclass(frozen=True)
class Owner:
    """A process: its host by name and boot, its number, its namespace, when it began, and what it runs."""

    host: str
    boot: str
    namespace: str
    pid: int
    began: str
    what: str
    nonce: str

    @staticmethod
    def here(what: str) -> Owner:
        """Return this process."""
        pid = os.getpid()
        return Owner(platform.node(), _boot(), _namespace(), pid, _began(pid), what, secrets.token_hex(8))

    @property
    def is_this_process(self) -> bool:
        """Return whether it is the calling process."""
        return self.on_this_host and self.pid == os.getpid() and self.began == _began(self.pid)

    @property
    def on_this_host(self) -> bool:
        """Return whether its number can be looked up here."""
        return (self.boot, self.namespace) == (_boot(), _namespace())

    @property
    def alive(self) -> bool:
        """Return whether the process is there; only of one on this host."""
        return bool(self.began) and self.began == _began(self.pid)

    def describe(self) -> str:
        """Return who it is, for messages."""
        return f"{self.what}, process {self.pid} on {self.host}"


class FolderLock:
    """The lock `path`, held between `acquire` and `release`."""

    def __init__(self, path: Path, what: str) -> None:
        """Prepare a lock for `what`, in words."""
        self.path, self._owner = path, Owner.here(what)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(self, *, from_this_process: bool = False) -> Owner | None:
        """Take the lock; return None, or its owner if somebody has it.

        Args:
            from_this_process: whether another lock object of this process may lose it.

        Raises:
            OSError: the folder cannot be written to.
        """
        while True:
            mine = self.path.with_name(f"{self.path.name}.{self._owner.nonce}")
            mine.write_text(json.dumps(asdict(self._owner)))
            try:
                self._make(mine)
                self._beat()
                return None
            except FileExistsError:
                owner = self._read_owner()
                if owner is None:  # released meanwhile
                    continue
                if not (owner.is_this_process and from_this_process) and not self._stale(owner, mine):
                    return owner
                self._remove(owner, part_path(mine))
            finally:
                mine.unlink(missing_ok=True)

    def owner(self, *, from_this_process: bool = False) -> Owner | None:
        """Return who has the lock, if a process of this host surely does; nothing is written."""
        owner = self._read_owner()
        if owner is None or not (owner.on_this_host and owner.alive) or (owner.is_this_process and from_this_process):
            return None
        return owner

    def _remove(self, owner: Owner, aside: Path) -> None:
        """Remove the lock of `owner`, but not that of a process which has taken it over meanwhile."""
        with suppress(FileNotFoundError):  # another process was faster
            os.rename(self.path, aside)  # which only one can
            found = _owner_at(aside)
            if found is not None and found.nonce != owner.nonce and not self.path.exists():
                os.rename(aside, self.path)
            aside.unlink(missing_ok=True)

    def _make(self, mine: Path) -> None:
        """Make the lock, or raise FileExistsError."""
        try:
            os.link(mine, self.path)  # atomic, on NFS as well
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            os.write(descriptor, mine.read_bytes())
            os.close(descriptor)

    def _read_owner(self) -> Owner | None:
        return _owner_at(self.path)

    def _stale(self, owner: Owner, mine: Path) -> bool:
        """Return whether the owner is gone; `mine` is a file of now."""
        if owner.on_this_host:
            return not owner.alive
        try:
            return mine.stat().st_mtime - self.path.stat().st_mtime > STALE
        except FileNotFoundError:
            return True

    @property
    def nonce(self) -> str:
        """Return the random number of this lock object."""
        return self._owner.nonce

    @property
    def held(self) -> bool:
        """Return whether this object still has the lock."""
        found = self._read_owner()
        return found is not None and found.nonce == self._owner.nonce

    def _beat(self) -> None:
        self._ended = ended = threading.Event()

        def beat() -> None:
            while not ended.wait(HEARTBEAT):
                with suppress(OSError):
                    if not self.held:  # another object of this process has it
                        return
                    os.utime(self.path)

        self._thread = threading.Thread(target=beat, name="seiche lock", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Give the lock up; a second call does nothing."""
        self._ended.set()
        if self._thread is not None and self.held:
            self.path.unlink(missing_ok=True)
        self._thread = None


def _owner_at(path: Path) -> Owner | None:
    try:
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


def _began(pid: int) -> str:
    """Return when a process began, in ticks since the boot; "" if there is none."""
    fields = _text(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
