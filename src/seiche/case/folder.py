# SPDX-License-Identifier: BSD-3-Clause
"""A folder of outputs holds one run: who may write into it, and what an earlier run left there.

The record of a run lists its files, and while it runs the places where it writes. `--replace` removes listed files
alone; a restart removes none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seiche.case.output import Place
from seiche.case.places import files_at, kind_of, make_folders, refuse_foreign_file, refuse_places
from seiche.errors import CaseError
from seiche.io.files import replacing
from seiche.io.lock import FolderLock, Owner

#: Names of the list of the files of a run, and of the lock while it runs.
RECORD, LOCK = ".seiche-run.json", ".seiche-run.lock"


class RunFolder:
    """The folder of a run, on the rank that writes; no method is collective."""

    def __init__(self, folder: Path, source: str, *, restart: Path | None = None, replace: bool = False) -> None:
        """Remember the folder of the case `source`; nothing is written yet.

        Args:
            folder: the folder.
            source: name of the case.
            restart: the checkpoint that the run continues from.
            replace: whether the files of an earlier run may be replaced.
        """
        self.path, self._source, self._replace = folder, source, replace
        self._lock = FolderLock(folder / LOCK, source)
        self._files: dict[str, str] = {}
        self._unlisted: dict[Path, tuple[int, int]] = {}
        self._restart = restart is not None
        ways = (restart.resolve(), restart.parent.resolve() / restart.name) if restart is not None else ()
        #: Whether the run continues from a checkpoint in the folder.
        self._inside = any(folder.resolve() in way.parents for way in ways)

    def refuse_early(self) -> None:
        """Refuse a folder that another run holds, or whose record lists files that stay, before anything is made.

        Raises:
            CaseError: it is so.
        """
        if not self.path.is_dir():
            return
        self._refuse_owner(self._lock.owner(from_this_process=self._replace or self._inside))
        if not (self._replace or self._inside):
            self._refuse_earlier(self._earlier(()))

    def claim(self, places: Sequence[Place], inputs: Iterable[Path]) -> None:
        """Make the folder and lock it, before anything is computed.

        Args:
            places: where the run writes.
            inputs: what the case reads.

        Raises:
            CaseError: another run writes there, has left its files, or a file belongs to something else.
        """
        inputs = list(inputs)
        refuse_places(places, inputs)
        make_folders(self._source, self.path, places)
        self._acquire()
        try:
            self._make_way(places, inputs)
            self._record("running", places)
        except BaseException:
            self._lock.release()
            raise

    def resume(self, places: Sequence[Place]) -> None:
        """Lock the folder again, for more steps or a checkpoint after the end of the run.

        Raises:
            CaseError: another run has, or had, the folder since.
        """
        self._acquire()
        if self._content().get("run") != self._lock.nonce:
            self._lock.release()
            raise CaseError(f"{self.path}: the folder holds a later run; nothing more is written")
        self._record("running", places)

    def _acquire(self) -> None:
        try:
            owner = self._lock.acquire(from_this_process=self._replace or self._inside)
        except OSError as error:
            raise CaseError(f"{self.path}: the folder cannot be locked: {error.strerror}") from None
        self._refuse_owner(owner)

    def _content(self) -> dict[str, Any]:
        """Return what the record says; nothing where there is none."""
        try:
            return dict(json.loads((self.path / RECORD).read_text()))
        except (OSError, ValueError, TypeError):
            return {}

    def _refuse_owner(self, owner: Owner | None) -> None:
        if owner is not None:
            raise CaseError(
                f"{self.path}: another run writes into this folder ({owner.describe()}); wait for its end, or choose"
                " another folder with --output"
            )

    def _refuse_earlier(self, present: Iterable[Path]) -> None:
        files = sorted(present)
        if not files:
            return
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        text = f"{self.path}: the folder holds the results of an earlier run ({files[0].name}{more}); give"
        if self._restart:
            raise CaseError(
                f"{text} --output to continue in another folder, or --replace to continue in this one: its files stay,"
                " but for those whose names the run needs"
            )
        raise CaseError(f"{text} --replace to replace them, --output for another folder, or --restart to continue")

    def _make_way(self, places: Sequence[Place], inputs: Iterable[Path]) -> None:
        earlier = self._earlier(places)
        present = {path: (place.key, kind) for place in places for path, kind in files_at(place).items()}
        unlisted = {path: key for path, (key, _) in present.items() if path not in earlier}
        if not (self._replace or self._inside):
            self._refuse_earlier({*present, *earlier})
        for path, key in () if self._inside else unlisted.items():
            raise CaseError(
                f"{key}: {path} is there, and the folder's record of its run does not list it: it is not replaced;"
                " move it, or choose another folder with --output"
            )
        self._unlisted = {path: _mark(path) for path in unlisted}
        read = {one.resolve() for one in inputs}
        for path, kind in earlier.items():
            if not self._is(kind, path):  # somebody has put another file there
                continue
            if self._restart or path.resolve() in read:
                self._files[self._name(path)] = kind
            else:
                path.unlink(missing_ok=True)

    def _is(self, kind: str, path: Path) -> bool:
        """Return whether a file is still of the kind that the run had written."""
        try:
            refuse_foreign_file(self._source, path, kind)
        except CaseError:
            return False
        return True

    def _earlier(self, places: Sequence[Place]) -> dict[Path, str]:
        """Return the files of an earlier run that are there and their kinds, in the folder or at `places`."""
        try:
            content = self._content()
            found = {self.path / str(name): str(kind) for name, kind in content.get("files", {}).items()}
            for name, kind, series in content.get("places", ()):  # of a run that did not end
                found |= files_at(Place("", self.path / str(name), str(kind), bool(series)))
        except (ValueError, TypeError, AttributeError):
            return {}
        base, here = self.path.resolve(), {path for place in places for path in files_at(place)}
        found = {path: kind for path, kind in found.items() if path in here or base in path.resolve().parents}
        return {path: kind for path, kind in found.items() if path.is_file()}

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.path)) if path.is_relative_to(self.path) else str(path)

    def add(self, files: Iterable[Path], places: Sequence[Place]) -> None:
        """List files that were written."""
        kinds = {place.path: kind_of(place) for place in places}
        found = {path: kinds.get(path, "") for path in files if path.is_file()}
        for place in places:
            found |= {path: kind for path, kind in files_at(place).items() if self._unlisted.get(path) != _mark(path)}
        self._files |= {self._name(path): kind for path, kind in found.items()}

    def _record(self, state: str, places: Sequence[Place] = ()) -> None:
        content = {
            "case": self._source,
            "run": self._lock.nonce,
            "state": state,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "files": self._files,
            "places": [(self._name(place.path), kind_of(place), place.series) for place in places],
        }
        with replacing(self.path / RECORD) as part:
            part.write_text(json.dumps(content, indent=1))

    def release(self, state: str) -> None:
        """List the files of the run with its `state` ("done", "stopped", "failed") and give up the lock."""
        if self._lock.held:
            self._record(state)
        self._lock.release()


def _mark(path: Path) -> tuple[int, int]:
    """Return what differs once a file was replaced."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns
