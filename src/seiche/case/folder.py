# SPDX-License-Identifier: BSD-3-Clause
"""The output folder of a run: lock, record, and refusal to overwrite an earlier run.

A folder contains one run. Its record lists the files of the run and, during the run, the places of its outputs.
`--replace` removes only listed files; a restart removes none.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seiche.case.output import Place
from seiche.case.places import (
    check_replaceable_file,
    file_kind,
    files_at,
    make_folders,
    refuse_places,
    refuse_shared,
)
from seiche.errors import CaseError
from seiche.io.files import replacing
from seiche.io.lock import FolderLock, Owner

#: Names of the record of a run, and of the lock during the run.
RECORD, LOCK = ".seiche-run.json", ".seiche-run.lock"


class RunFolder:
    """The folder of a run, on the writing rank; no method is collective."""

    def __init__(self, folder: Path, source: str, *, restart: Path | None = None, replace: bool = False) -> None:
        """Prepare `folder` for the case `source`, which continues `restart` or may `replace` an earlier run."""
        self.path, self._source = folder, source
        self._lock = FolderLock(folder / LOCK, source)
        self._files: dict[str, str] = {}
        self._unlisted: dict[Path, tuple[int, int]] = {}
        self._complete_step: int | None = None
        self._restart = restart is not None
        paths = (restart.resolve(), restart.parent.resolve() / restart.name) if restart is not None else ()
        #: Whether the run continues a checkpoint in this folder.
        self._continues = any(folder.resolve() in path.parents for path in paths)
        self._may_replace = replace or self._continues

    def refuse_occupied(self) -> None:
        """Raise a CaseError if another run uses the folder, or it contains files of one; called before any set-up."""
        if not self.path.is_dir():
            return
        try:
            owner = self._lock.owner(from_this_process=self._may_replace)
        except OSError as error:
            raise self._locking_error(error) from None
        self._refuse_owner(owner)
        if not self._may_replace:
            self._refuse_earlier_run(self._earlier_files(()))

    def claim(self, places: Sequence[Place], inputs: Iterable[Path]) -> None:
        """Create and lock the folder for outputs at `places` of a case that reads `inputs`, before any computation.

        Raises:
            CaseError: another run uses the folder, or it contains results of one, or a file of another program.
        """
        inputs = list(inputs)
        refuse_places(places, inputs)
        make_folders(self._source, self.path, places)
        self._acquire()
        try:
            earlier = self._read_record()
            if self._continues and earlier.get("state") == "done":
                self._complete_step = earlier.get("step")
            self._clear(places, inputs)
            self._write_record("running", places)
        except BaseException:
            self._lock.release()
            raise

    def is_complete_at(self, step: int) -> bool:
        """Return whether a restart continues a run in this folder that was complete at `step`; valid after `claim`."""
        return self._complete_step == step

    def admit(self, new: Sequence[Place], places: Sequence[Place], inputs: Iterable[Path]) -> None:
        """Accept an output at `new` places in addition to the present `places`, after `claim`.

        Raises:
            CaseError: another output uses the place, or a file there was not written by the run of this folder.
        """
        refuse_shared(new, places)
        refuse_places(new, inputs)
        make_folders(self._source, self.path, new)
        self._refuse_unlisted(new, {self.path / name for name in self._files})
        if self._lock.is_owned:
            self._write_record("running", [*places, *new])

    def resume(self, places: Sequence[Place]) -> None:
        """Lock the folder again after the end of the run; CaseError if another run has used it since."""
        self._acquire()
        if self._read_record().get("run") != self._lock.nonce:
            self._lock.release()
            raise CaseError(f"{self.path}: cannot write more results of this run; the folder contains a later run")
        self._write_record("running", places)

    def _acquire(self) -> None:
        try:
            owner = self._lock.acquire(from_this_process=self._may_replace)
        except OSError as error:
            raise self._locking_error(error) from None
        self._refuse_owner(owner)

    def _locking_error(self, error: OSError) -> CaseError:
        return CaseError(f"{self.path}: cannot lock the folder: {error.strerror}")

    def _read_record(self) -> dict[str, Any]:
        """Return the content of the record, empty if there is none."""
        try:
            return dict(json.loads((self.path / RECORD).read_text()))
        except (OSError, ValueError, TypeError):
            return {}

    def _refuse_owner(self, owner: Owner | None) -> None:
        if owner is not None:
            raise CaseError(
                f"{self.path}: another run writes into this folder ({owner.describe()}); wait until it ends, or "
                "choose another folder with --output"
            )

    def _refuse_earlier_run(self, present: Iterable[Path]) -> None:
        files = sorted(present)
        if not files:
            return
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        text = f"{self.path}: the folder contains the results of an earlier run ({files[0].name}{more}); use"
        if self._restart:
            raise CaseError(
                f"{text} --output to continue in another folder, or --replace to continue here and replace only files"
                " whose names the run needs"
            )
        raise CaseError(f"{text} --replace to replace them, --output for another folder, or --restart to continue")

    def _clear(self, places: Sequence[Place], inputs: Iterable[Path]) -> None:
        """Remove the files of an earlier run, or add them to the record if they remain."""
        earlier = self._earlier_files(places)
        if not self._may_replace:
            self._refuse_earlier_run({*earlier, *(path for place in places for path in files_at(place))})
        self._refuse_unlisted(places, earlier)
        inputs = {path.resolve() for path in inputs}
        for path, kind in earlier.items():
            if not self._has_kind(path, kind):  # replaced by a file of another program
                continue
            if self._restart or path.resolve() in inputs:
                self._files[self._relative_name(path)] = kind
            else:
                path.unlink(missing_ok=True)

    def _refuse_unlisted(self, places: Iterable[Place], listed: Container[Path]) -> None:
        """Store which files at `places` are not `listed`; CaseError unless the run is a restart in this folder."""
        unlisted = {path: place.key for place in places for path in files_at(place) if path not in listed}
        for path, key in () if self._continues else unlisted.items():
            raise CaseError(
                f"{key}: {path} exists, but {RECORD} of the folder does not list it, so it is not replaced; move it,"
                " or choose another folder with --output"
            )
        self._unlisted |= {path: _version(path) for path in unlisted}

    def _has_kind(self, path: Path, kind: str) -> bool:
        with suppress(CaseError):
            check_replaceable_file(self._source, path, kind)
            return True
        return False

    def _earlier_files(self, places: Sequence[Place]) -> dict[Path, str]:
        """Return existing files of an earlier run and their kinds, in the folder or at `places`."""
        try:
            content = self._read_record()
            files = {self.path / str(name): str(kind) for name, kind in content.get("files", {}).items()}
            for name, kind, series in content.get("places", ()):  # of an interrupted run
                files |= files_at(Place("", self.path / str(name), str(kind), bool(series)))
        except (ValueError, TypeError, AttributeError):
            return {}
        base, outputs = self.path.resolve(), {path for place in places for path in files_at(place)}
        files = {path: kind for path, kind in files.items() if path in outputs or base in path.resolve().parents}
        return {path: kind for path, kind in files.items() if path.is_file()}

    def _relative_name(self, path: Path) -> str:
        return str(path.relative_to(self.path)) if path.is_relative_to(self.path) else str(path)

    def add(self, files: Iterable[Path], places: Sequence[Place]) -> None:
        """Add files written by this run to the record: `files`, and new ones at `places`."""
        kinds = {place.path: file_kind(place) for place in places}
        written = {path: kinds.get(path, "") for path in files if path.is_file()}
        for place in places:
            written |= {p: kind for p, kind in files_at(place).items() if self._unlisted.get(p) != _version(p)}
        self._files |= {self._relative_name(path): kind for path, kind in written.items()}

    def _write_record(self, state: str, places: Sequence[Place] = (), step: int | None = None) -> None:
        content = {
            "case": self._source,
            "run": self._lock.nonce,
            "state": state,
            "step": step,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "files": self._files,
            "places": [(self._relative_name(place.path), file_kind(place), place.series) for place in places],
        }
        with replacing(self.path / RECORD) as temporary:
            temporary.write_text(json.dumps(content, indent=1))

    def release(self, state: str, step: int) -> None:
        """Record the files, the final `state` ("done", "stopped", "failed") and `step`, and release the lock."""
        if self._lock.is_owned:
            self._write_record(state, step=step)
        self._lock.release()


def _version(path: Path) -> tuple[int, int]:
    """Return the inode and modification time (ns), which change when a file is replaced."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns
