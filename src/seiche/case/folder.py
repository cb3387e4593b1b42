# SPDX-License-Identifier: BSD-3-Clause
"""A folder of outputs holds one run: who may write into it, and what an earlier run left there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from seiche.case.output import Place
from seiche.case.places import kind_of, make_folders, refuse_foreign_file, refuse_places, states_of
from seiche.errors import CaseError
from seiche.io.files import replacing
from seiche.io.lock import FolderLock

#: Names of the list of the files of a run, and of the lock while it runs.
RECORD, LOCK = ".seiche-run.json", ".seiche-run.lock"


class RunFolder:
    """The folder of a run, on the rank that writes; no method is collective."""

    def __init__(self, folder: Path, source: str) -> None:
        """Remember the folder of the case `source`; nothing is written yet."""
        self.path, self._source = folder, source
        self._lock = FolderLock(folder / LOCK, source)
        self._files: dict[str, str] = {}

    def claim(self, places: Sequence[Place], inputs: Iterable[Path], *, replace: bool, continued: bool) -> None:
        """Make the folder and lock it, before anything is computed.

        Args:
            places: where the run writes.
            inputs: what the case reads.
            replace: whether the files of an earlier run may go.
            continued: whether the run continues from a checkpoint in the folder: then they stay.

        Raises:
            CaseError: another run writes there, has left its files, or a file belongs to something else.
        """
        refuse_places(places, inputs)
        make_folders(self._source, self.path, places)
        try:
            owner = self._lock.acquire(from_this_process=replace or continued)
        except OSError as error:
            raise CaseError(f"{self.path}: the folder cannot be locked: {error.strerror}") from None
        if owner is not None:
            raise CaseError(
                f"{self.path}: another run writes into this folder ({owner.describe()}); wait for its end, or choose"
                " another folder with --output"
            )
        try:
            self._make_way(places, replace=replace, continued=continued)
            self._record("running")
        except BaseException:
            self._lock.release()
            raise

    def _make_way(self, places: Sequence[Place], *, replace: bool, continued: bool) -> None:
        earlier = self._earlier()
        present = {path for place in places for path in states_of(place) if path.is_file()}
        present |= {path for path in earlier if path.is_file()}
        if continued:
            self._files = {self._name(path): kind for path, kind in earlier.items()}
            return
        if present and not replace:
            first = min(present)
            more = f" and {len(present) - 1} more" if len(present) > 1 else ""
            raise CaseError(
                f"{self.path}: the folder holds the results of an earlier run ({first.name}{more}); give --replace to"
                " replace them, --output for another folder, or --restart to continue"
            )
        kinds = {path: kind_of(place) for place in places for path in states_of(place)} | earlier
        for path in present:
            try:
                refuse_foreign_file(self._source, path, kinds[path])
            except CaseError:
                continue  # no longer the file that the run had written
            path.unlink(missing_ok=True)

    def _earlier(self) -> dict[Path, str]:
        """Return the files of an earlier run and their kinds, as it has listed them."""
        try:
            files = json.loads((self.path / RECORD).read_text())["files"]
            found = {self.path / str(name): str(kind) for name, kind in files.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}
        base = self.path.resolve()
        return {path: kind for path, kind in found.items() if base in path.resolve().parents}

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.path)) if path.is_relative_to(self.path) else str(path)

    def add(self, files: Iterable[Path], places: Sequence[Place]) -> None:
        """List files that were written."""
        kinds = {place.path: kind_of(place) for place in places}
        self._files |= {self._name(path): kinds.get(path, "") for path in files}
        self._files |= {
            self._name(path): kind_of(place) for place in places for path in states_of(place) if path.is_file()
        }

    def _record(self, state: str) -> None:
        content = {
            "case": self._source,
            "state": state,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "files": self._files,
        }
        with replacing(self.path / RECORD) as part:
            part.write_text(json.dumps(content, indent=1))

    def release(self, state: str) -> None:
        """List the files of the run with its `state` ("done", "stopped", "failed") and give up the lock."""
        if self._lock.held:
            self._record(state)
        self._lock.release()
